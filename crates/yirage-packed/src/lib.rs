//! Repacked weights kept on disk, so that the next start maps them instead of making them again.
//!
//! ```text
//! FOLDER/KEY.packed      an entry: a header, then the images of a model's weights
//! FOLDER/KEY.N.new       an entry that is being written; locked by its writer
//! FOLDER/store.lock      held for moments, while a writer makes room and begins
//! ```
//! **The key** is a hash of everything that the bytes depend on, which the caller names; anything that differs is
//! another entry, never a wrong one. **Writers** write under another name, sync, and rename: an entry under its own name
//! is whole, whatever crashed. It is never written to again, so a mapping of it stays what it was, also after it was
//! removed. **At open** the header is checked against its checksum, the file's length and the key; nothing else is read.
//! The images carry a checksum for every range of some MiB, which [`Check`] compares at leisure.
//!
//! This crate knows no model, device or layout: images are names and bytes.
#![forbid(unsafe_code)]

mod blocks;
mod check;
mod entry;
mod error;
mod header;
mod key;
pub mod limits;
mod source;
mod store;
mod sum;
mod writer;

pub use check::{Check, verify};
pub use entry::Entry;
pub use error::PackedError;
pub use header::{Header, Image, MAGIC, VERSION};
pub use key::Key;
pub use source::SourceFile;
pub use store::{Listed, Removed, Store};
pub use writer::{NewEntry, Writer};
