//! Beginnings of sequences in files: what a model has computed of a prompt, for a later process.
//!
//! ```text
//! "YIRAGEKV", version, length of the header       8 + 4 + 4 bytes, numbers little endian
//! header                                          JSON: what computed it, its tokens, the bytes of each layer
//! contents of the layers' caches                  in the header's order, as the device stores them
//! SHA-256 of all of that                          32 bytes
//! ```
//! A file is written under another name and renamed once it is whole. What it holds is put into the cache while it is read, and
//! is found by requests only when the sum was right: of a file that is cut off or spoilt nothing stays. Only the model, device
//! and precision that have computed it take it back, so an answer that goes on from it has the bytes of one that was never
//! interrupted.

mod error;
mod fingerprint;
mod header;
mod read;
mod write;

pub use error::{PrefixFileError, PrefixFileFault};
pub use fingerprint::ModelFingerprint;

use crate::error::SessionError;
use crate::model::ModelHandle;
use std::path::Path;

/// A beginning in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixSize {
    /// Positions that are computed.
    pub positions: usize,
    /// Bytes of the file.
    pub bytes: u64,
}

impl ModelHandle {
    /// Writes the longest beginning of `tokens` that the cache has, in whole blocks, to `path`; nothing is written where it
    /// has none. A file that is there is replaced. Answers that run wait meanwhile.
    ///
    /// # Errors
    /// [`SessionError::PrefixFile`], [`SessionError::Engine`], [`SessionError::Gone`].
    pub fn save_prefix(
        &self,
        path: &Path,
        model: ModelFingerprint,
        tokens: Vec<u32>,
        salt: Vec<u8>,
    ) -> Result<PrefixSize, SessionError> {
        let path = path.to_owned();
        self.between_steps(move |engine| write::write(engine, &path, model, &tokens, &salt))?
    }

    /// Puts the beginning of a file into the cache, and gives its tokens. Answers that run wait meanwhile.
    ///
    /// # Errors
    /// As [`ModelHandle::save_prefix`].
    pub fn restore_prefix(&self, path: &Path, model: ModelFingerprint) -> Result<(PrefixSize, Vec<u32>), SessionError> {
        let path = path.to_owned();
        self.between_steps(move |engine| read::read(engine, &path, model))?
    }
}
