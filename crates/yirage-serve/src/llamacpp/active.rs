//! A text that is being continued, and how its answers are to be given.

use super::cut::InfillLimits;
use crate::generate::Turns;
use crate::models::{ModelLease, SlotKey};
use std::time::Instant;

/// Texts that are being continued.
pub(super) struct ActiveLlamaCompletion {
    /// None where there was nothing to continue.
    pub(super) turns: Option<Turns>,
    pub(super) lease: ModelLease,
    pub(super) prompts: Vec<Vec<u32>>,
    /// Answers to each prompt.
    pub(super) n: usize,
    pub(super) shape: LlamaReplyOptions,
    /// By which the prompt and its answer are found again.
    pub(super) slot: Option<SlotKey>,
    pub(super) began: Instant,
    pub(super) ignored: Vec<String>,
}

/// How an answer is given.
#[derive(Default)]
pub(super) struct LlamaReplyOptions {
    pub(super) stream: bool,
    /// Whether ids of tokens are wanted.
    pub(super) tokens: bool,
    /// The fields that are wanted of an answer; none is all.
    pub(super) fields: Option<Vec<String>>,
    pub(super) cut: InfillLimits,
    /// The number of a slot; none is any.
    pub(super) slot: Option<usize>,
}
