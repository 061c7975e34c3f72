//! What lies in the folder of a store, and which of it is ours: files by name, kind and first bytes. Everything else is
//! nobody's business here: it is named to the user and never opened for writing, moved or removed.

use crate::header::MAGIC;
use crate::key::PackedKey;
use crate::{PackedError, limits, mark};
use std::collections::HashMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use yirage_mmap::open_regular;

/// Held while a writer makes room and begins.
pub(crate) const LOCK: &str = "store.lock";

/// The folder of texts that lie beside the entries: ours, and no entry.
const TEXTS: &str = "texts";

/// The folder of texts that lie beside the entries of `folder`.
pub fn texts_folder(folder: &Path) -> PathBuf {
    folder.join(TEXTS)
}

/// The name of an entry.
pub(crate) fn entry_name(key: PackedKey) -> String {
    format!("{key}.packed")
}

/// The name of an entry's mark.
pub(crate) fn mark_name(key: PackedKey) -> String {
    format!("{key}.used")
}

/// A name for an entry that is being written, one of many.
pub(crate) fn unfinished_name(key: PackedKey, number: u32) -> String {
    format!("{key}.{}-{number}.new", std::process::id())
}

/// What a file of ours is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StoreFileKind {
    /// An entry.
    Entry(PackedKey),
    /// When an entry was last used.
    Mark(PackedKey),
    /// An entry that is being written, or was when its writer was ended.
    Unfinished(PackedKey),
    /// The lock.
    Lock,
}

impl StoreFileKind {
    /// What a name says.
    fn named(name: &str) -> Option<StoreFileKind> {
        if name == LOCK {
            return Some(StoreFileKind::Lock);
        }
        let (key, rest) = name.split_once('.')?;
        let key = PackedKey::parse(key)?;
        let number = |text: &str| !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit());
        let is_unfinished = || {
            let numbers = rest.strip_suffix(".new").and_then(|rest| rest.split_once('-'));
            numbers.is_some_and(|(process, n)| number(process) && number(n))
        };
        match rest {
            "packed" => Some(StoreFileKind::Entry(key)),
            "used" => Some(StoreFileKind::Mark(key)),
            _ => is_unfinished().then_some(StoreFileKind::Unfinished(key)),
        }
    }

    /// Whether the content is what the name says. A writer may be ended before its first byte.
    fn fits(self, path: &Path, bytes: u64) -> bool {
        match self {
            StoreFileKind::Entry(_) => begins_like_an_entry(path),
            StoreFileKind::Mark(_) => mark::is_ours(path),
            StoreFileKind::Unfinished(_) => bytes == 0 || begins_like_an_entry(path),
            StoreFileKind::Lock => bytes == 0,
        }
    }
}

fn begins_like_an_entry(path: &Path) -> bool {
    let mut head = [0; MAGIC.len()];
    open_regular(path).is_ok_and(|mut file| file.read_exact(&mut head).is_ok()) && head == MAGIC
}

/// A file of ours.
#[derive(Clone, Debug)]
pub(crate) struct StoreFile {
    pub(crate) kind: StoreFileKind,
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
    pub(crate) modified: SystemTime,
}

/// A folder's content.
#[derive(Debug, Default)]
pub(crate) struct StoreFolder {
    pub(crate) ours: Vec<StoreFile>,
    /// Paths of everything else.
    pub(crate) foreign: Vec<PathBuf>,
}

impl StoreFolder {
    /// Looks at all files of `folder`; one that does not exist has none.
    ///
    /// # Errors
    /// [`PackedError::Io`] for a folder that cannot be read.
    pub(crate) fn read(folder: &Path) -> Result<StoreFolder, PackedError> {
        let found = match fs::read_dir(folder) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(StoreFolder::default()),
            found => found.map_err(PackedError::io("read the folder", folder))?,
        };
        let mut content = StoreFolder::default();
        for file in found.flatten().take(limits::FILES) {
            let path = file.path();
            let kind = file.file_name().to_str().and_then(StoreFileKind::named);
            if file.file_name() == TEXTS && file.file_type().is_ok_and(|ty| ty.is_dir()) {
                continue;
            }
            // Of the link itself where it is one: what it leads to is not in this folder.
            match (kind, file.metadata()) {
                (Some(kind), Ok(data)) if data.is_file() && kind.fits(&path, data.len()) => {
                    let modified = data.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    content.ours.push(StoreFile { kind, path, bytes: data.len(), modified });
                }
                // Gone since the folder was read: of a writer that is done, say.
                (_, Err(e)) if e.kind() == io::ErrorKind::NotFound => {}
                _ => content.foreign.push(path),
            }
        }
        content.foreign.sort();
        Ok(content)
    }

    /// The entries, the one used last first.
    pub(crate) fn entries(&self) -> Vec<(PackedKey, StoreFile)> {
        let mark =
            |item: &StoreFile| if let StoreFileKind::Mark(key) = item.kind { Some((key, item.modified)) } else { None };
        let marks: HashMap<PackedKey, SystemTime> = self.ours.iter().filter_map(mark).collect();
        let entry = |item: &StoreFile| {
            let StoreFileKind::Entry(key) = item.kind else { return None };
            let modified = marks.get(&key).map_or(item.modified, |&mark| mark.max(item.modified));
            Some((key, StoreFile { modified, ..item.clone() }))
        };
        let mut entries: Vec<_> = self.ours.iter().filter_map(entry).collect();
        entries.sort_by(|(a, one), (b, other)| other.modified.cmp(&one.modified).then(a.cmp(b)));
        entries
    }

    /// Those that are being written, or were.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = (PackedKey, &StoreFile)> {
        self.ours
            .iter()
            .filter_map(|item| if let StoreFileKind::Unfinished(key) = item.kind { Some((key, item)) } else { None })
    }
}
