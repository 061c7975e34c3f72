//! Whether the images of an entry are what was written.
//!
//! The file is read, not the mapping: what is looked at need not stay in memory, and a disk that cannot be read is an
//! error instead of a signal. Both show the same bytes, those in the system's cache of the file.

use crate::PackedError;
use crate::header::Header;
use crate::limits;
use crate::sum::range_sum;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Goes through the ranges of an entry.
#[derive(Debug)]
pub struct Check {
    path: PathBuf,
    file: File,
    header: Arc<Header>,
    image: usize,
    range: usize,
    buffer: Vec<u8>,
}

impl Check {
    /// A check of the entry at `path`, whose head was read already.
    pub(crate) fn open(path: &Path, header: Arc<Header>) -> Result<Check, PackedError> {
        let file = File::open(path).map_err(PackedError::io("open", path))?;
        Ok(Check { path: path.to_path_buf(), file, header, image: 0, range: 0, buffer: Vec::new() })
    }

    /// Begins at a range somewhere in the entry instead of at the first one; `place` may be any number. The check ends
    /// with the last range.
    pub fn begin_at(&mut self, place: u64) {
        let ranges: u64 = self.header.images.iter().map(|image| image.sums.len() as u64).sum();
        let mut skip = place.checked_rem(ranges).unwrap_or(0);
        (self.image, self.range) = (0, 0);
        while let Some(image) = self.header.images.get(self.image).filter(|i| skip >= i.sums.len() as u64) {
            skip -= image.sums.len() as u64;
            self.image += 1;
        }
        self.range = skip as usize;
    }

    /// Checks the next range and gives its size; `None` behind the last one.
    ///
    /// # Errors
    /// [`PackedError::Damaged`], [`PackedError::Io`]. The next call goes on behind the range.
    pub fn next_range(&mut self) -> Result<Option<u64>, PackedError> {
        while self.header.images.get(self.image).is_some_and(|image| self.range >= image.sums.len()) {
            (self.image, self.range) = (self.image + 1, 0);
        }
        let header = Arc::clone(&self.header);
        let Some(image) = header.images.get(self.image) else { return Ok(None) };
        let start = self.range as u64 * header.range_bytes;
        let (first, end) = (image.offset + start, image.offset + image.bytes.min(start + header.range_bytes));
        let wanted = &image.sums[self.range];
        self.range += 1;
        self.read(first, end)?;
        let found = range_sum(&self.buffer);
        if found == *wanted {
            return Ok(Some(end - first));
        }
        let (path, image, wanted) = (self.path.clone(), image.name.clone(), wanted.clone());
        Err(PackedError::Damaged { path, image, first, end, wanted, found })
    }

    /// Puts bytes of the file into the buffer. A range may be a gigabyte by its header: memory grows with what comes.
    fn read(&mut self, first: u64, end: u64) -> Result<(), PackedError> {
        let error = |source| PackedError::Io { doing: "read", path: self.path.clone(), source };
        self.buffer.clear();
        self.buffer.reserve((end - first).min(limits::RANGE_BYTES) as usize);
        self.file.seek(SeekFrom::Start(first)).map_err(error)?;
        (&mut self.file).take(end - first).read_to_end(&mut self.buffer).map_err(error)?;
        Ok(())
    }
}

/// Checks the entry at `path` completely and gives the bytes that were compared.
///
/// # Errors
/// The first of [`PackedError::Header`], [`PackedError::Version`], [`PackedError::Damaged`] and [`PackedError::Io`].
pub fn verify(path: &Path) -> Result<u64, PackedError> {
    let header = crate::store::read_header(path)?;
    let mut check = Check::open(path, Arc::new(header))?;
    let mut bytes = 0;
    while let Some(more) = check.next_range()? {
        bytes += more;
    }
    Ok(bytes)
}
