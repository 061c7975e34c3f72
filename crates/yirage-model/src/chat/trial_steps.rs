//! The steps that trial renderings of one template share.

use std::sync::atomic::{AtomicU64, Ordering};

use super::limits::MAX_TRIAL_STEPS;

/// What is left of [`MAX_TRIAL_STEPS`]. A rendering that is given it ends with [`super::ChatError::Limit`] where it takes more.
#[derive(Debug)]
pub struct TrialSteps(AtomicU64);

impl Default for TrialSteps {
    fn default() -> Self {
        Self(AtomicU64::new(MAX_TRIAL_STEPS))
    }
}

impl TrialSteps {
    pub(super) fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn take(&self, steps: u64) {
        self.0.store(self.left().saturating_sub(steps), Ordering::Relaxed);
    }

    /// Nothing is left: what does not come out then was not refused.
    pub fn are_spent(&self) -> bool {
        self.left() == 0
    }
}
