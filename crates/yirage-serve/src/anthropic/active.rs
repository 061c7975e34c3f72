//! An answer that has begun.

use crate::generate::Conversing;

/// A conversation whose answer has begun.
pub(super) struct ActiveMessage {
    pub(super) conversing: Conversing,
    pub(super) id: String,
    pub(super) stream: bool,
    pub(super) ignored: Vec<String>,
}
