//! What is kept of a request beside the scheduler's sequence.

use crate::sampling::{CheckedParams, Logprobs, TokenCounts};
use std::collections::VecDeque;

/// What the engine keeps of a request while its sequence runs.
pub(super) struct RequestState {
    pub(super) sampling: CheckedParams,
    pub(super) counts: TokenCounts,
    /// Whether logits are reported.
    pub(super) logits: bool,
    /// Positions that will be computed if it is not stopped early.
    pub(super) length: u32,
    /// Distinguishes cached beginnings.
    pub(super) salt: Vec<u8>,
    /// What belongs to the verified tokens that the scheduler has not delivered yet.
    pub(super) ready: VecDeque<Ready>,
}

/// What belongs to a token of a verified run.
pub(super) struct Ready {
    /// Its row of the last step.
    pub(super) row: usize,
    /// The position of that row.
    pub(super) position: usize,
    pub(super) logprobs: Option<Logprobs>,
}
