//! What a layer is to those who record it and make a graph of it.

use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use std::fmt;

/// A layer that was recorded.
pub(crate) trait Layer: fmt::Debug + Send {
    /// The method that recorded it.
    fn method(&self) -> &'static str;

    /// Whether each row of what it gives depends on the same row of what it reads and on nothing else, so that it can be
    /// computed of the wanted rows alone.
    fn row_by_row(&self) -> bool {
        false
    }

    /// Whether it chooses tokens from logits, which is its first read.
    fn chooses(&self) -> bool {
        false
    }

    /// Adds its ops; one value for each tensor that it writes.
    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError>;
}
