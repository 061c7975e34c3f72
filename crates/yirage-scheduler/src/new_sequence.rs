//! What the scheduler is given of a request, and whether that can ever run.

use super::error::AdmissionError;
use crate::limits::{MAX_CACHE_SALT_BYTES, MAX_STOP_IDS};

/// Which positions' logits, or hidden states, a request wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogitsWanted {
    /// Only those a next token is sampled from.
    #[default]
    Last,
    /// Those of every position, each exactly once and in order, the prompt's included. Cached beginnings are
    /// recomputed where their logits are still missing.
    All,
}

/// What the scheduler needs to know of a request. Sampling parameters and stop strings stay with the caller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewSequence {
    /// Token ids of the prompt, at least one.
    pub prompt: Vec<u32>,
    /// New tokens to sample at most; 0 only computes the prompt; `None` goes on to the end of the context (or of what
    /// the cache can hold).
    pub max_new_tokens: Option<u32>,
    /// A sampled token among these ends the sequence; it is still reported as its last token.
    pub stop_ids: Vec<u32>,
    /// Positions whose logits are wanted.
    pub logits: LogitsWanted,
    /// Requests share cached beginnings only under equal salts; empty is the common one.
    pub cache_salt: Vec<u8>,
    /// Who is less comes first.
    pub priority: i32,
    /// On whose account it runs: keys of one priority take turns.
    pub key: u64,
}

impl NewSequence {
    /// Checks the request by itself and against the room there is, and gives the length (prompt and output) at which
    /// the sequence ends.
    pub(super) fn final_length(&self, max_context: usize, capacity: usize) -> Result<usize, AdmissionError> {
        let prompt = self.prompt.len();
        if prompt == 0 {
            return Err(AdmissionError::EmptyPrompt);
        }
        if self.stop_ids.len() > MAX_STOP_IDS {
            return Err(AdmissionError::TooManyStopIds { stop_ids: self.stop_ids.len() });
        }
        let (bytes, most) = (self.cache_salt.len(), MAX_CACHE_SALT_BYTES);
        if bytes > most {
            return Err(AdmissionError::SaltTooLong { bytes, most });
        }
        // The last sampled token is never fed back, so it needs no place in the cache.
        let most = max_context.min(capacity.saturating_add(1));
        let max_new = match self.max_new_tokens {
            Some(max_new) => max_new as usize,
            None => most.saturating_sub(prompt).max(1),
        };
        let total = prompt.saturating_add(max_new);
        if total > max_context {
            return Err(AdmissionError::ExceedsContext { prompt, max_new, total, max_context });
        }
        let positions = if max_new == 0 { total } else { total - 1 };
        if positions > capacity {
            return Err(AdmissionError::NeverFits { positions, capacity });
        }
        Ok(total)
    }
}
