//! The files that an entry was made from.

use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use yirage_mmap::FileStamp;

/// A file that an entry was made from, and what it was then.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceFile {
    /// Its path, without links on the way.
    pub path: String,
    /// Its length in bytes.
    pub bytes: u64,
    /// When its content was last written, in nanoseconds since 1970.
    pub modified: i64,
    /// When content or metadata last changed, likewise; 0 where the system does not say.
    pub changed: i64,
}

impl SourceFile {
    /// The file that was opened as `path` with this stamp; `None` where its path is no text. Times beyond the year 2262
    /// are cut.
    pub fn new(path: &Path, stamp: FileStamp) -> Option<SourceFile> {
        let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
        let path = real.to_str()?.to_owned();
        let cut = |time: i128| i64::try_from(time).unwrap_or(i64::MAX);
        let FileStamp { bytes, modified, changed, .. } = stamp;
        Some(SourceFile { path, bytes, modified: cut(modified), changed: cut(changed) })
    }

    /// Whether the file is what it was.
    pub fn is_unchanged(&self) -> bool {
        let path = PathBuf::from(&self.path);
        FileStamp::read(&path).is_ok_and(|stamp| SourceFile::new(&path, stamp).as_ref() == Some(self))
    }
}
