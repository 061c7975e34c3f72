//! The scheduler's limits for one engine.

use super::error::ConfigError;
use crate::limits::{MAX_CONTEXT, MAX_SEQS, MAX_STEP_TOKENS, MAX_WAITING};

/// How much the scheduler may put into a step and keep in its queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulerConfig {
    /// Sequences that may hold cache blocks at once.
    pub max_seqs: u32,
    /// Tokens one step may run over all sequences; at least `max_seqs`, so that no running sequence is left out.
    pub token_budget: u32,
    /// Rows of logits one step may have over all sequences; at least `max_seqs`. A chunk of a request for all logits
    /// is at most what is left of it.
    pub max_rows: u32,
    /// Tokens one prefill chunk may have; at most `token_budget` is used.
    pub prefill_chunk: u32,
    /// Prefill chunks that may share a step with each other and with decodes; at least 1.
    pub max_prefills: u32,
    /// Positions one sequence may have, prompt and output together.
    pub max_context: u32,
    /// Requests that may wait for their first admission.
    pub max_waiting: u32,
}

impl Default for SchedulerConfig {
    /// 16 sequences, 512 tokens and rows a step, any number of prefill chunks in it, a context of 4096, 1024 waiting.
    fn default() -> Self {
        SchedulerConfig {
            max_seqs: 16,
            token_budget: 512,
            max_rows: 512,
            prefill_chunk: 512,
            max_prefills: 16,
            max_context: 4096,
            max_waiting: 1024,
        }
    }
}

impl SchedulerConfig {
    /// Checks every field against the hard limits and against each other.
    ///
    /// # Errors
    /// [`ConfigError`] with the field's name, its value and what is allowed.
    pub fn validate(&self) -> Result<(), ConfigError> {
        let fields = [
            ("max_seqs", self.max_seqs, MAX_SEQS),
            ("token_budget", self.token_budget, MAX_STEP_TOKENS),
            ("max_rows", self.max_rows, MAX_STEP_TOKENS),
            ("prefill_chunk", self.prefill_chunk, MAX_STEP_TOKENS),
            ("max_prefills", self.max_prefills, MAX_SEQS),
            ("max_context", self.max_context, MAX_CONTEXT),
            ("max_waiting", self.max_waiting, MAX_WAITING),
        ];
        for (field, value, most) in fields {
            if value == 0 || value > most {
                return Err(ConfigError::OutOfRange { field, value, most });
            }
        }
        for (field, value) in [("token_budget", self.token_budget), ("max_rows", self.max_rows)] {
            if value < self.max_seqs {
                return Err(ConfigError::BelowSeqs { field, value, max_seqs: self.max_seqs });
            }
        }
        Ok(())
    }

    /// The most new positions one sequence can have in one step.
    pub(super) fn chunk(&self) -> usize {
        self.prefill_chunk.min(self.token_budget) as usize
    }
}
