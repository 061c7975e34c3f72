//! Repacked weights that are kept on disk: which entry is this model's, weights from it, and one made for the next
//! start.
//!
//! Nothing here can fail a load or a step: what cannot be kept or used is made again from the model's files, and a
//! [`Notice`] says why.

mod background;
mod entry_writer;
mod model_entry;
mod notice;

pub(crate) use background::Background;
pub(crate) use model_entry::PackedModelEntry;
pub use notice::Notice;
