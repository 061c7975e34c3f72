//! An answer that has begun.

use crate::generate::Turns;
use std::time::Instant;

/// An answer that has begun.
pub(super) struct OllamaAnswer {
    pub(super) turns: Turns,
    /// Whether it is a message, or the text of one.
    pub(super) as_message: bool,
    pub(super) began: Instant,
}
