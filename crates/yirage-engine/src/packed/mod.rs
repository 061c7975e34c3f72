//! Repacked weights that are kept on disk: which entry is this model's, weights from it, and one made for the next
//! start.
//!
//! Nothing here can fail a load or a step: what cannot be kept or used is made again from the model's files, and a
//! [`Notice`] says why.

mod background;
mod keep;
mod notice;
mod place;

pub(crate) use background::Background;
pub use notice::Notice;
pub(crate) use place::Packed;
