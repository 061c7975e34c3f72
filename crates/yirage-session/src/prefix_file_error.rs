//! What can be wrong with the file of a beginning.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An error of such a file.
#[derive(Debug, Error)]
#[error("{}: {what}", path.display())]
pub struct PrefixFileError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong.
    pub what: PrefixFileFault,
}

/// What is wrong with it.
#[derive(Debug, Error)]
pub enum PrefixFileFault {
    /// The system said so.
    #[error("cannot {doing}: {source}")]
    Io {
        /// What was tried.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Something else.
    #[error("expected the file of a prompt's cache, got one that begins with other bytes; name another file")]
    NotOne,
    /// Made by a program that writes it otherwise.
    #[error("expected version {expected} of such files, got {found}; remove it and compute the prompt again")]
    Version {
        /// The version here.
        expected: u32,
        /// The version there.
        found: u32,
    },
    /// A header that says nothing that can be.
    #[error("its header is not one that was written here ({why}); remove it and compute the prompt again")]
    Header {
        /// What is wrong.
        why: String,
    },
    /// Made by another model, device or precision.
    #[error("expected what {expected} has computed, got what {found} has; remove it, or name another file")]
    Foreign {
        /// What is here.
        expected: String,
        /// What wrote it.
        found: String,
    },
    /// Cut off, or longer than it should be.
    #[error("expected {expected} bytes by its header, got {found}; remove it and compute the prompt again")]
    Length {
        /// Bytes by the header.
        expected: u64,
        /// Bytes there.
        found: u64,
    },
    /// Spoilt.
    #[error("its checksum does not fit its contents; remove it and compute the prompt again")]
    Sum,
}

impl PrefixFileFault {
    /// Of a file.
    pub(crate) fn of(self, path: &Path) -> PrefixFileError {
        PrefixFileError { path: path.to_owned(), what: self }
    }

    /// What the system said of something that was tried.
    pub(crate) fn io(doing: &'static str) -> impl FnOnce(io::Error) -> PrefixFileFault {
        move |source| PrefixFileFault::Io { doing, source }
    }
}
