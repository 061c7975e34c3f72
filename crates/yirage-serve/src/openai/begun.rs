//! Answers that have begun.

use crate::generate::{Conversing, Turns};
use serde_json::Value;

/// A conversation whose answers have begun.
pub(super) struct Chat {
    pub(super) conversing: Conversing,
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) logprobs: bool,
    pub(super) token_ids: bool,
    pub(super) ignored: Vec<String>,
}

/// Texts whose continuations have begun.
pub(super) struct Completions {
    pub(super) turns: Turns,
    /// The prompts, by the order of their answers.
    pub(super) prompts: Vec<Vec<u32>>,
    pub(super) n: usize,
    pub(super) id: String,
    pub(super) created: u64,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) logprobs: bool,
    pub(super) echo: bool,
    pub(super) token_ids: bool,
    pub(super) ignored: Vec<String>,
}

/// The type of whatever is in an object, for tests and documents alike.
pub(super) const WHOLE: &str = "chat.completion";
/// The type of a part of it.
pub(super) const PART: &str = "chat.completion.chunk";

/// What a client is told of the engine that answered.
pub(super) fn fingerprint() -> Value {
    Value::from(concat!("yirage-", env!("CARGO_PKG_VERSION")))
}
