//! The folder of kept results.

use crate::limits::ENTRY_BYTES;
use std::path::PathBuf;
use yirage_packed::TextStore;

/// A folder of results that together keep to a limit. Files in it with other names are left alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TuneCacheFolder(pub(crate) TextStore);

impl TuneCacheFolder {
    /// The results in `path`, of at most `limit` bytes together. The folder is made when the first one is written.
    pub fn new(path: PathBuf, limit: u64) -> TuneCacheFolder {
        TuneCacheFolder(TextStore::new(path, ".tuned", ENTRY_BYTES, limit))
    }
}
