//! Requests come and go.

use super::core::Engine;
use super::event::Event;
use super::request::Request;
use super::request_state::RequestState;
use crate::error::EngineError;
use crate::sampling::TokenCounts;
use crate::scheduler::{Ended, FinishReason, NewSequence, SeqId};
use std::collections::VecDeque;

impl Engine {
    /// Queues a request.
    ///
    /// # Errors
    /// [`EngineError::UnknownToken`], [`EngineError::Sampling`], [`EngineError::Admission`].
    pub fn add(&mut self, request: Request) -> Result<SeqId, EngineError> {
        let vocabulary = self.facts.vocabulary;
        if let Some(at) = request.prompt.iter().position(|&id| id >= vocabulary) {
            return Err(EngineError::UnknownToken { id: request.prompt[at], at, vocabulary });
        }
        let sampling = request.sampling.checked(vocabulary as usize)?;
        let counts = TokenCounts::new(&request.prompt);
        let length = self.whole_length(request.prompt.len(), request.max_new_tokens);
        let scaled = self.dynamic_rope.as_ref().filter(|d| length > d.original).map(|d| d.original);
        // Keys that were rotated for another length are not this sequence's.
        let salt = scaled.map_or_else(Vec::new, |_| length.to_le_bytes().to_vec());
        let prompt = request.prompt.clone();
        let seq = self.scheduler.add(NewSequence {
            prompt: request.prompt,
            max_new_tokens: request.max_new_tokens,
            stop_ids: request.stop_ids,
            logits: request.logits.unwrap_or_default(),
            cache_salt: salt.clone(),
        })?;
        self.speculator.add(seq, &prompt);
        self.known.extend(scaled.map(|original| Event::RopeScaled { seq, length, original }));
        let (logits, ready) = (request.logits.is_some(), VecDeque::new());
        self.requests.insert(seq, RequestState { sampling, counts, logits, length, salt, ready });
        Ok(seq)
    }

    /// Positions that a request computes if nothing stops it early: its last token is not computed any more.
    fn whole_length(&self, prompt: usize, max_new_tokens: Option<u32>) -> u32 {
        let new = max_new_tokens.map_or(u64::MAX, u64::from).max(1);
        (prompt as u64).saturating_add(new - 1).min(u64::from(self.facts.context)) as u32
    }

    /// Ends a sequence now; its end is reported here or, if it is being computed, by the next step.
    pub fn finish(&mut self, seq: SeqId, reason: FinishReason) -> Option<Event> {
        match self.scheduler.finish(seq, reason) {
            Ended::Now(update) => Some(self.report(update)),
            Ended::AtCommit | Ended::Unknown => None,
        }
    }

    /// Whether nothing waits or runs.
    pub fn is_idle(&self) -> bool {
        self.scheduler.is_idle()
    }
}
