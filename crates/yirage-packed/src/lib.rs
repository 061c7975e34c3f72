//! Repacked weights kept on disk, so that the next start maps them instead of making them again.
//!
//! ```text
//! FOLDER/KEY.packed      an entry: a header, then the images of a model's weights
//! FOLDER/KEY.used        when it was last used, and what of it was checked since the machine was started
//! FOLDER/KEY.N.new       an entry that is being written; locked by its writer
//! FOLDER/store.lock      held for moments, while a writer makes room and begins
//! FOLDER/texts           smaller things of the same model
//! ```
//! **The key** is a hash of everything that the bytes depend on, which the caller names; anything that differs is
//! another entry, never a wrong one. **Writers** write under another name, sync, and rename: an entry under its own name
//! is whole, whatever crashed. It is never written to again, so a mapping of it stays what it was, also after it was
//! removed. **At open** the header is checked against its checksum, the file's length and the key, and all images
//! against theirs, unless that was done since the machine was started and the file was not written to since: an [`PackedEntry`]
//! is whole. [`PackedEntry::confirm`] tells whether it still is. **Files that are not the store's** are left alone, whatever
//! their names.
//!
//! Smaller things that can be made again, such as plans, are texts: [`sealed`] under a checksum, and in a folder of [`TextStore`],
//! of which each is whole or absent as well.
//!
//! This crate knows no model, device or layout: images are names and bytes.
#![forbid(unsafe_code)]

mod blocks;
mod check;
mod entry;
mod error;
mod folder;
mod header;
mod key;
pub mod limits;
mod mark;
pub mod sealed;
mod source;
mod store;
mod sum;
mod text_store;
mod writer;

pub use check::verify;
pub use entry::PackedEntry;
pub use error::PackedError;
pub use folder::texts_folder;
pub use header::{Image, MAGIC, PackedHeader};
pub use key::{PackedKey, VERSION};
pub use source::SourceFile;
pub use store::{Contents, PackedStore, RemovedFiles, StoredEntry};
pub use text_store::{TextStore, TextStoreError};
pub use writer::{NewEntry, PackedWriter};
