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
//! interrupted. What goes to another machine by a network has the same bytes.

use yirage_engine::Engine;

mod fingerprint;
mod header;
mod read;
mod write;

pub use fingerprint::ModelFingerprint;
pub(crate) use read::{read, read_bytes};
pub(crate) use write::{bytes, write};

/// Bytes of the file of so many tokens at most.
pub(crate) fn most_bytes(engine: &Engine, tokens: usize) -> u64 {
    header::most_bytes(tokens, engine.cache_bytes(tokens))
}

/// A beginning in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixSize {
    /// Positions that are computed.
    pub positions: usize,
    /// Bytes of the file.
    pub bytes: u64,
}
