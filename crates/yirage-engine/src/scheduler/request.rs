//! What comes in and what goes out: requests, events, finish reasons.

use std::fmt;

use super::error::AdmissionError;
use crate::limits::{MAX_SALT_BYTES, MAX_STOP_IDS};

/// A sequence's number. Numbers ascend in the order of arrival and are never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeqId(pub u64);

impl fmt::Display for SeqId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// Which positions' logits a request wants.
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
pub struct Request {
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
}

impl Request {
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
        if self.cache_salt.len() > MAX_SALT_BYTES {
            return Err(AdmissionError::SaltTooLong { bytes: self.cache_salt.len() });
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

/// Why a sequence ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// It sampled this stop id.
    StopId(u32),
    /// The caller found the end in the text (a stop string).
    StopText,
    /// It reached its number of new tokens or the end of the context.
    Length,
    /// The caller cancelled it.
    Cancelled,
    /// Its step failed.
    Error(String),
}

/// Token counts of a finished sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens that the cache had when the sequence was first admitted.
    pub cached_tokens: usize,
    /// Tokens sampled, a stop id included.
    pub new_tokens: usize,
    /// Times the sequence lost its blocks and was recomputed.
    pub preemptions: u32,
    /// Tokens guessed and verified.
    pub drafted: usize,
    /// Of those, the ones that became tokens of the sequence: steps it was spared.
    pub accepted: usize,
    /// Steps in which guesses of it were verified.
    pub verifications: usize,
}

/// What a commit or a cancellation makes known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A sequence sampled its next token.
    Token {
        /// The sequence.
        seq: SeqId,
        /// The token's id.
        token: u32,
        /// Its position in the sequence, counted from the prompt's beginning.
        position: usize,
    },
    /// A sequence ended; its number means nothing from here on.
    Finished {
        /// The sequence.
        seq: SeqId,
        /// Why.
        reason: FinishReason,
        /// Its counts.
        usage: Usage,
    },
}

/// What [`super::Scheduler::finish`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The sequence is gone; the event is its last.
    Now(Event),
    /// The sequence is in the step in flight; the commit of that step reports its end and drops its token.
    AtCommit,
    /// No such sequence (it may have ended before).
    Unknown,
}
