//! An entry that is open.

use crate::header::Header;
use crate::key::Key;
use crate::{Check, PackedError};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use yirage_mmap::MappedFile;

/// A whole entry, mapped. Nothing but its head was read.
#[derive(Debug)]
pub struct Entry {
    map: Arc<MappedFile>,
    header: Arc<Header>,
    index: HashMap<String, usize>,
}

impl Entry {
    /// Opens the entry at `path`, which must be the one of `key`.
    pub(crate) fn open(path: &Path, key: Key) -> Result<Entry, PackedError> {
        let map = Arc::new(MappedFile::open(path)?);
        let name = path.display().to_string();
        let header = Header::parse(&map, map.len() as u64, &name)?;
        if header.key != key.to_string() {
            let (expected, found) = (key.to_string(), header.key);
            return Err(PackedError::Header { path: name, field: "key".into(), expected, found });
        }
        let index = header.images.iter().enumerate().map(|(i, image)| (image.name.clone(), i)).collect();
        Ok(Entry { map, header: Arc::new(header), index })
    }

    /// What it says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.map.path()
    }

    /// The file, mapped, and the bytes of an image in it; `None` for a name it does not have.
    pub fn image(&self, name: &str) -> Option<(Arc<MappedFile>, Range<usize>)> {
        let image = &self.header.images[*self.index.get(name)?];
        // The whole file is mapped, so its offsets are addresses' offsets.
        Some((Arc::clone(&self.map), image.offset as usize..(image.offset + image.bytes) as usize))
    }

    /// Tells the system that all of it will be read soon.
    pub fn will_need(&self) {
        self.map.will_need();
    }

    /// A check of its images.
    ///
    /// # Errors
    /// [`PackedError::Io`].
    pub fn check(&self) -> Result<Check, PackedError> {
        Check::open(self.path(), Arc::clone(&self.header))
    }
}
