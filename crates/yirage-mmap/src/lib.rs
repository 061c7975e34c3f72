//! The crate of opening files: whatever others made is read through it. [`open_regular`] and its kin take regular files
//! only, never wait and never read beyond a limit; [`MappedFile`] opens the same way and maps, read-only, with pages that
//! can be given back: the only unsafe code of loading. [`step_back`] puts a thread behind all others for the work that
//! follows a load; [`guard_mappings`] makes an error of the signal that a file raises which is cut off.
//!
//! This crate knows nothing of what is in a file. Mapping moves no bytes; a page is read from the file when it is
//! first touched, and [`MappedFile::release`] lets the system forget it again once its content lives elsewhere
//! (weights repacked at load).
//!
//! # What happens when the file changes under the mapping
//! The length is taken once, at open, and checked again after mapping, so a file that is being truncated while it is
//! opened is refused with [`MapError::LengthChanged`]. Later changes cannot be prevented by a reader:
//! * a file overwritten in place shows its new bytes: parsers copy what they decide on, so decisions stay made;
//! * a file **truncated** afterwards makes a read past its new end raise `SIGBUS`, which ends the process unless its
//!   owner called [`guard_mappings`]: then [`MappedFile::intact`] tells. Replace model files by renaming a complete new
//!   file over them (as package managers and the hub cache do), never by rewriting in place: the mapping then keeps the
//!   old file alive.

mod guard;
mod image;
mod open;
mod priority;
mod release;
mod stamp;

pub use guard::guard_mappings;
pub use image::WeightImage;
pub use open::{
    FileError, FileKind, is_there, open_regular, read_bytes, read_bytes_if_there, read_piped_text, read_text,
    read_text_if_there, read_within,
};
pub use priority::step_back;
pub use stamp::FileStamp;

use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a file could not be mapped.
#[derive(Debug, Error)]
pub enum MapError {
    /// The file could not be opened, or is none.
    #[error(transparent)]
    File(#[from] FileError),
    /// The file is larger than this machine can address.
    #[error("{}: {len} bytes are more than this machine can address", path.display())]
    TooLarge {
        /// The file asked for.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
    },
    /// The system refused the mapping.
    #[error("{}: cannot map {len} bytes: {source}; check the address space limit (ulimit -v)", path.display())]
    Map {
        /// The file asked for.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
        /// What the system said.
        source: io::Error,
    },
    /// Someone else writes to the file.
    #[error("{}: the length changed from {before} to {after} bytes while opening; \
             wait until the file is completely written", path.display())]
    LengthChanged {
        /// The file asked for.
        path: PathBuf,
        /// Bytes when opened.
        before: u64,
        /// Bytes after mapping.
        after: u64,
    },
    /// More files than this crate keeps track of.
    #[error("{}: {} files are mapped already, and no more can be", path.display(), guard::MAPPINGS)]
    TooMany {
        /// The file asked for.
        path: PathBuf,
    },
    /// A part of the file could not be read when it was needed; zeros were read instead.
    #[error("{}: a part of it could not be read: it was cut off while in use, or its disk fails; start again when the \
             file is whole", path.display())]
    Lost {
        /// The file.
        path: PathBuf,
    },
}

/// A whole file, mapped read-only.
#[derive(Debug)]
pub struct MappedFile {
    path: PathBuf,
    /// Ends before the mapping does, so it stands before it.
    watch: guard::MappingGuard,
    map: memmap2::Mmap,
    stamp: FileStamp,
}

impl MappedFile {
    /// Maps the whole regular file at `path`; an empty file gives an empty slice.
    ///
    /// # Errors
    /// [`MapError`] when the path is not a readable regular file, cannot be mapped, or changes length meanwhile.
    pub fn open(path: impl AsRef<Path>) -> Result<MappedFile, MapError> {
        let path = path.as_ref().to_path_buf();
        let (file, data) = open::open_checked(&path)?;
        let stamp = FileStamp::of(&data);
        let before = stamp.bytes;
        let len = usize::try_from(before).map_err(|_| MapError::TooLarge { path: path.clone(), len: before })?;
        // SAFETY: the mapping is private to this value, read-only, and covers exactly the file's length at open; the
        // slice handed out borrows `self`, so it cannot outlive the mapping. Bytes are only ever read as `u8`, for
        // which every bit pattern is valid. That another process may change or truncate the file is inherent to
        // mapping; the module documentation says what happens then.
        let map = unsafe { memmap2::MmapOptions::new().len(len).map(&file) };
        let map = map.map_err(|source| MapError::Map { path: path.clone(), len: before, source })?;
        let after = file.metadata().map_err(|source| FileError::Open { path: path.clone(), source })?.len();
        if after != before {
            return Err(MapError::LengthChanged { path, before, after });
        }
        let Some(watch) = guard::MappingGuard::new(map.as_ptr().addr(), map.len()) else {
            return Err(MapError::TooMany { path });
        };
        Ok(MappedFile { path, watch, map, stamp })
    }

    /// The file's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.map
    }

    /// The path the file was opened by.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the file was when it was opened: of the very file that is mapped, whatever the path leads to since.
    pub fn stamp(&self) -> FileStamp {
        self.stamp
    }

    /// Whether everything that was read of it so far was in the file; see [`guard_mappings`].
    ///
    /// # Errors
    /// [`MapError::Lost`], from the first page on that could not be had.
    pub fn intact(&self) -> Result<(), MapError> {
        if self.watch.is_lost() { Err(MapError::Lost { path: self.path.clone() }) } else { Ok(()) }
    }

    /// Tells the system that the whole file will be read soon, so that what is not in memory comes in large pieces.
    /// Returns at once where it is; this is advice, and a system that declines is no error.
    ///
    /// On Linux it also asks for large pages, through which memory is read faster; what is in memory already keeps the
    /// pages it has.
    pub fn will_need(&self) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let _ = self.map.advise(memmap2::Advice::HugePage);
        #[cfg(unix)]
        let _ = self.map.advise(memmap2::Advice::WillNeed);
    }

    /// Gives back the memory of the whole pages inside `range` (byte offsets, clamped to the file). The bytes stay
    /// readable: touching them reads the file again. Pages that the range covers only partly are kept, because a
    /// neighbour may still be in use.
    ///
    /// Returns the number of bytes given back. On systems other than unix nothing is given back and 0 is returned;
    /// the same when the system declines, since this is advice, not a need.
    pub fn release(&self, range: Range<usize>) -> usize {
        release::release(&self.map, range)
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.bytes()
    }
}

impl AsRef<[u8]> for MappedFile {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}
