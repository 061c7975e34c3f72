//! A folder of small texts: one file each, whole or absent, within a limit together.

use crate::limits::{FILES, UNFINISHED};
use crate::store::RemovedFiles;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;
use thiserror::Error;
use yirage_mmap::{FileError, read_text_if_there};

/// A folder of texts that together keep to a limit. Files in it with other names are left alone, so that folders of
/// other endings, and repacked weights, may lie in the same place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TextStore {
    folder: PathBuf,
    ending: &'static str,
    limit: u64,
    longest: u64,
}

/// Why a text was not read or written.
#[derive(Debug, Error)]
pub enum TextStoreError {
    /// It is no regular file, is too long, or is no text.
    #[error(transparent)]
    File(#[from] FileError),
    /// A text that is longer than all of them together may be.
    #[error("a text of {bytes} bytes does not fit into the {limit} that such texts may take together")]
    TooLong {
        /// Bytes of the text.
        bytes: u64,
        /// Bytes that all of them may have.
        limit: u64,
    },
    /// The file system said no.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl TextStoreError {
    fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> TextStoreError {
        let path = path.to_path_buf();
        move |source| TextStoreError::Io { doing, path, source }
    }
}

const UNFINISHED_ENDING: &str = ".part";

/// What lies in a folder and is ours.
struct StoredText {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl TextStore {
    /// The texts in `folder` whose names end in `ending`, as in `.plan`: of at most `longest` bytes each and `limit` bytes
    /// together. The folder is made when the first one is written.
    pub fn new(folder: PathBuf, ending: &'static str, longest: u64, limit: u64) -> TextStore {
        TextStore { folder, ending, limit, longest }
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The file of the text called `id`.
    pub fn file(&self, id: u128) -> PathBuf {
        self.folder.join(format!("{id:032x}{}", self.ending))
    }

    /// The text called `id`; none where nothing has its name.
    ///
    /// # Errors
    /// [`TextStoreError::File`].
    pub fn read(&self, id: u128) -> Result<Option<String>, TextStoreError> {
        let path = self.file(id);
        let text = read_text_if_there(&path, self.longest)?;
        if text.is_some() {
            // It counts as used now. Where that cannot be written down it is removed sooner, which harms nothing.
            let _ = File::options().append(true).open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        }
        Ok(text)
    }

    /// Writes a text so that its name stands for all of it or for what was there before, and removes those that were used
    /// longest ago until all keep to the limit. Gives how many.
    ///
    /// # Errors
    /// [`TextStoreError::Io`], [`TextStoreError::TooLong`].
    pub fn write(&self, id: u128, text: &str) -> Result<usize, TextStoreError> {
        let (bytes, limit) = (text.len() as u64, self.limit.min(self.longest));
        if bytes > limit {
            return Err(TextStoreError::TooLong { bytes, limit });
        }
        fs::create_dir_all(&self.folder).map_err(TextStoreError::io("create the folder", &self.folder))?;
        let removed = self.evict_for(id, bytes)?;
        let (part, target) = (self.part(id), self.file(id));
        let written = write_new(&part, text)
            .and_then(|()| fs::rename(&part, &target).map_err(TextStoreError::io("rename", &part)));
        if written.is_err() {
            // The next writers remove it once it is old, if this does not.
            let _ = fs::remove_file(&part);
        }
        written.map(|()| removed)
    }

    /// Removes all of them, what was not finished, and the folder where nothing else is in it: the files and their bytes.
    ///
    /// # Errors
    /// [`TextStoreError::Io`] at the first that cannot be removed.
    pub fn clear(&self) -> Result<RemovedFiles, TextStoreError> {
        let mut removed = RemovedFiles::default();
        if !self.folder.is_dir() {
            return Ok(removed);
        }
        for item in self.items()? {
            fs::remove_file(&item.path).map_err(TextStoreError::io("remove", &item.path))?;
            removed.files += 1;
            removed.bytes += item.bytes;
        }
        // It stays where files of others are in it.
        let _ = fs::remove_dir(&self.folder);
        Ok(removed)
    }

    /// A name that no other writer has.
    fn part(&self, id: u128) -> PathBuf {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let (process, next, ending) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed), self.ending);
        self.folder.join(format!("{id:032x}.{process}.{next}{ending}{UNFINISHED_ENDING}"))
    }

    /// Removes what was used longest ago until `wanted` more bytes keep to the limit; of what `id` has now nothing counts.
    fn evict_for(&self, id: u128, wanted: u64) -> Result<usize, TextStoreError> {
        let (mut entries, mut removed, own) = (Vec::new(), 0, self.file(id));
        for item in self.items()? {
            let old = item.used.elapsed().is_ok_and(|age| age > UNFINISHED);
            if item.path.to_string_lossy().ends_with(self.ending) {
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
            fs::remove_file(&item.path).map_err(TextStoreError::io("remove", &item.path))?;
            held -= item.bytes;
            removed += 1;
        }
        Ok(removed)
    }

    /// The files whose names are ours: texts, and what was not finished.
    fn items(&self) -> Result<Vec<StoredText>, TextStoreError> {
        let mut items = Vec::new();
        let unfinished = format!("{}{UNFINISHED_ENDING}", self.ending);
        for file in fs::read_dir(&self.folder).map_err(TextStoreError::io("list", &self.folder))?.take(FILES) {
            let file = file.map_err(TextStoreError::io("list", &self.folder))?;
            let name = file.file_name();
            let Some(name) = name.to_str() else { continue };
            let id = name.get(..32).is_some_and(|id| id.chars().all(|c| c.is_ascii_hexdigit()));
            let whole = name.len() == 32 + self.ending.len() && name.ends_with(self.ending);
            // What another process has removed meanwhile is not there.
            let Ok(data) = fs::symlink_metadata(file.path()) else { continue };
            if id && (whole || name.ends_with(&unfinished)) && data.is_file() {
                let used = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                items.push(StoredText { path: file.path(), bytes: data.len(), used });
            }
        }
        Ok(items)
    }
}

fn write_new(path: &Path, text: &str) -> Result<(), TextStoreError> {
    let mut file =
        File::options().create_new(true).write(true).open(path).map_err(TextStoreError::io("create", path))?;
    file.write_all(text.as_bytes()).map_err(TextStoreError::io("write", path))?;
    file.sync_all().map_err(TextStoreError::io("sync", path))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_two_endings_and_other_files_live_side_by_side() {
        let folder = tempfile::tempdir().unwrap();
        let of = |ending, limit| TextStore::new(folder.path().join("new"), ending, 100, limit);
        let (plans, results) = (of(".plan", 20), of(".tuned", 20));
        assert_eq!(plans.read(1).unwrap(), None);
        assert_eq!((plans.write(1, "one").unwrap(), results.write(1, "other").unwrap()), (0, 0));
        fs::write(folder.path().join("new/note.plan"), "not ours, and longer than the limit").unwrap();
        assert_eq!(plans.write(1, "one again").unwrap(), 0);
        assert_eq!(plans.read(1).unwrap().as_deref(), Some("one again"));
        assert_eq!(results.read(1).unwrap().as_deref(), Some("other"));
        assert_eq!(plans.write(2, "of fourteen...").unwrap(), 1);
        assert_eq!((plans.read(1).unwrap(), fs::read_dir(plans.folder()).unwrap().count()), (None, 3));
        let refused = plans.write(3, &"x".repeat(21)).unwrap_err();
        assert!(matches!(refused, TextStoreError::TooLong { bytes: 21, limit: 20 }), "{refused}");
        assert_eq!(plans.clear().unwrap(), RemovedFiles { files: 1, bytes: 14 });
        assert_eq!(
            (plans.clear().unwrap(), fs::read_dir(plans.folder()).unwrap().count()),
            (RemovedFiles::default(), 2)
        );
        fs::remove_file(folder.path().join("new/note.plan")).unwrap();
        results.clear().unwrap();
        assert!(!results.folder().exists());
    }
}
