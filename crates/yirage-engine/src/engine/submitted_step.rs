//! A step on the device, as the engine remembers it.

use crate::sampling::SamplingInFlight;
use crate::scheduler::Batch;
use std::time::Instant;
use yirage_hal::Flight;

/// A step that was submitted.
pub(super) struct SubmittedStep {
    pub(super) batch: Batch,
    /// When.
    pub(super) began: Instant,
    pub(super) model: Flight,
    /// The tokens that are being chosen from its logits, if any.
    pub(super) sampling: Option<SamplingInFlight>,
}
