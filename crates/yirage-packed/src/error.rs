//! What can go wrong with entries. None of it is a reason not to run a model: the weights can be made again.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;
use yirage_mmap::MapError;

/// An error of the store.
#[derive(Debug, Error)]
pub enum PackedError {
    /// The file system said no.
    #[error("{}: cannot {doing}: {source}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The entry cannot be mapped.
    #[error(transparent)]
    Map(#[from] MapError),
    /// A header that is none, or damaged.
    #[error("{path}: {field}: expected {expected}, found {found}; `yirage cache clear` removes it")]
    Header {
        /// The file.
        path: String,
        /// Which part of it.
        field: String,
        /// What should be there.
        expected: String,
        /// What is there.
        found: String,
    },
    /// An entry of another version of this program.
    #[error("{path}: written as version {found}, and this program reads {known}; `yirage cache clear` removes it")]
    Version {
        /// The file.
        path: String,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Bytes of a weight are not what was written.
    #[error(
        "{}: `{image}`, bytes {first} to {end}: damaged on disk (checksum {found}, {wanted} was written); \
         the disk or the memory may be failing",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The weight.
        image: String,
        /// First byte in the file.
        first: u64,
        /// The byte behind the last.
        end: u64,
        /// The checksum that was written.
        wanted: String,
        /// The checksum of what is there.
        found: String,
    },
    /// Bytes between weights are not the zeros that were written.
    #[error("{}: bytes {first} to {end}: damaged on disk (zeros were written); the disk or the memory may be failing",
            path.display())]
    Gap {
        /// The file.
        path: PathBuf,
        /// First byte in the file.
        first: u64,
        /// The byte behind the last.
        end: u64,
    },
    /// Somebody writes to an entry, which no version of this program does.
    #[error("{}: another program keeps writing to it; try again when it is done", path.display())]
    Changing {
        /// The file.
        path: PathBuf,
    },
    /// Another process writes this entry.
    #[error("{}: another process writes this entry, or holds its folder; try again when it is done", path.display())]
    Busy {
        /// What it writes.
        path: PathBuf,
    },
    /// Something that is not the store's has a name that it needs.
    #[error("{}: not written by yirage, and left alone; move it away", path.display())]
    Foreign {
        /// What is in the way.
        path: PathBuf,
    },
    /// More than the limit allows for all entries together.
    #[error("{}: {wanted} bytes of repacked weights exceed the limit of {limit} for all of them", folder.display())]
    OverLimit {
        /// The folder.
        folder: PathBuf,
        /// Bytes of the new entry.
        wanted: u64,
        /// Bytes allowed.
        limit: u64,
    },
    /// The disk is too full.
    #[error(
        "{}: {wanted} bytes of repacked weights and a reserve of {reserve} do not fit: {free} bytes are free",
        folder.display()
    )]
    DiskFull {
        /// The folder.
        folder: PathBuf,
        /// Bytes of the new entry.
        wanted: u64,
        /// Bytes that stay free.
        reserve: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// A model file changed while it was loaded.
    #[error("{path}: changed since it was opened; its repacked weights are not kept")]
    SourceChanged {
        /// The file.
        path: String,
    },
    /// The writer was given something else than it was told before.
    #[error("{}: image {image}: {bytes} bytes from byte {at} were not announced", path.display())]
    Unannounced {
        /// The file.
        path: PathBuf,
        /// Which image, counted from 0.
        image: usize,
        /// Bytes handed over.
        bytes: usize,
        /// Bytes of it written before.
        at: u64,
    },
}

impl PackedError {
    /// Whether the entry itself is at fault, rather than the way to it or the version of this program.
    pub fn is_damage(&self) -> bool {
        use PackedError::{Changing, Damaged, Gap, Header};
        matches!(self, Damaged { .. } | Gap { .. } | Header { .. } | Changing { .. })
    }

    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> PackedError {
        let path = path.to_path_buf();
        move |source| PackedError::Io { doing, path, source }
    }
}
