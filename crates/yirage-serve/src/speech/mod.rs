//! What a model says, cut into what is thought, what is said, and calls of tools.
//!
//! How a model marks these is told by its chat template: the markers it was trained on stand in there. Unknown here: who
//! asked, by which protocol.

mod calls;
mod family;
mod splitter;

pub(crate) use family::{CallForm, Family, THINK};
pub(crate) use splitter::{Piece, Splitter};
