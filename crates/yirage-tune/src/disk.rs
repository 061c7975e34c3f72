//! The folder of kept results: one file each, whole or absent, within a limit together.

use crate::error::TuneError;
use crate::limits::{ENTRY_BYTES, FILES, UNFINISHED};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;
use yirage_mmap::read_text_if_there;

/// A folder of results that together keep to a limit. Files in it with other names are left alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Folder {
    path: PathBuf,
    limit: u64,
}

const ENDING: &str = ".tuned";
const UNFINISHED_ENDING: &str = ".part";

/// What lies in a folder and is ours.
struct Item {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Folder {
    /// The results in `path`, of at most `limit` bytes together. The folder is made when the first one is written.
    pub fn new(path: PathBuf, limit: u64) -> Folder {
        Folder { path, limit }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, id: u128) -> PathBuf {
        self.path.join(format!("{id:032x}{ENDING}"))
    }

    /// The text of an entry; none where nothing has its name.
    ///
    /// # Errors
    /// [`TuneError::File`] for what is no regular file, is too long, or is no text.
    pub(crate) fn read(&self, id: u128) -> Result<Option<String>, TuneError> {
        let path = self.file(id);
        let text = read_text_if_there(&path, ENTRY_BYTES)?;
        if text.is_some() {
            // It counts as used now. Where that cannot be written down it is removed sooner, which harms nothing.
            let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        Ok(text)
    }

    /// Writes an entry so that its name stands for all of it or for what was there before, and removes the entries that
    /// were used longest ago until all keep to the limit. Gives how many.
    ///
    /// # Errors
    /// [`TuneError::Io`]; [`TuneError::Option`] for an entry that is larger than the limit.
    pub(crate) fn write(&self, id: u128, text: &str) -> Result<usize, TuneError> {
        let bytes = text.len() as u64;
        if bytes > self.limit {
            let why = format!("a result of {bytes} bytes does not fit into the {} that results may take", self.limit);
            return Err(TuneError::Option { option: "cache limit", why });
        }
        fs::create_dir_all(&self.path).map_err(TuneError::io("create the folder", &self.path))?;
        let removed = self.make_room(id, bytes)?;
        let (part, target) = (self.part(id), self.file(id));
        let written =
            write_new(&part, text).and_then(|()| fs::rename(&part, &target).map_err(TuneError::io("rename", &part)));
        if written.is_err() {
            // The next writers remove it once it is old, if this does not.
            let _ = fs::remove_file(&part);
        }
        written.map(|()| removed)
    }

    /// A name that no other writer has.
    fn part(&self, id: u128) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        self.path.join(format!("{id:032x}.{process}.{next}{UNFINISHED_ENDING}"))
    }

    /// Removes what was used longest ago until `wanted` more bytes keep to the limit; of what `id` has now nothing counts.
    fn make_room(&self, id: u128, wanted: u64) -> Result<usize, TuneError> {
        let (mut entries, mut removed, own) = (Vec::new(), 0, self.file(id));
        for item in self.items()? {
            let old = item.used.elapsed().is_ok_and(|age| age > UNFINISHED);
            if item.path.to_string_lossy().ends_with(ENDING) {
                entries.push(item);
            } else if old {
                removed += usize::from(fs::remove_file(&item.path).is_ok());
            }
        }
        entries.retain(|item| item.path != own);
        entries.sort_by(|a, b| (b.used, &b.path).cmp(&(a.used, &a.path)));
        let mut held: u64 = entries.iter().map(|item| item.bytes).sum();
        while held > self.limit.saturating_sub(wanted)
            && let Some(item) = entries.pop()
        {
            fs::remove_file(&item.path).map_err(TuneError::io("remove", &item.path))?;
            held -= item.bytes;
            removed += 1;
        }
        Ok(removed)
    }

    /// The files whose names are ours: entries, and what was not finished.
    fn items(&self) -> Result<Vec<Item>, TuneError> {
        let mut items = Vec::new();
        for file in fs::read_dir(&self.path).map_err(TuneError::io("list", &self.path))?.take(FILES) {
            let file = file.map_err(TuneError::io("list", &self.path))?;
            let name = file.file_name();
            let Some(name) = name.to_str() else { continue };
            let id = name.get(..32).is_some_and(|id| id.chars().all(|c| c.is_ascii_hexdigit()));
            let ours =
                id && (name.len() == 32 + ENDING.len() && name.ends_with(ENDING) || name.ends_with(UNFINISHED_ENDING));
            // What another process has removed meanwhile is not there.
            let Ok(data) = fs::symlink_metadata(file.path()) else { continue };
            if ours && data.is_file() {
                let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                items.push(Item { path: file.path(), bytes: data.len(), used });
            }
        }
        Ok(items)
    }
}

fn write_new(path: &Path, text: &str) -> Result<(), TuneError> {
    let mut file = File::options().create_new(true).write(true).open(path).map_err(TuneError::io("create", path))?;
    file.write_all(text.as_bytes()).map_err(TuneError::io("write", path))?;
    file.sync_all().map_err(TuneError::io("sync", path))
}
