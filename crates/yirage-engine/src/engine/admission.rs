//! Requests come and go.

use super::adapters::adapted;
use super::cache_salt::cache_salt;
use super::core::Engine;
use super::event::Event;
use super::request::Request;
use super::request_state::{RequestState, RequestedOutputs};
use super::restraint::Restraint;
use crate::error::EngineError;
use crate::limits::MAX_LOGPROBS;
use crate::sampling::{Constraint, ParamError, RequestTokenLists, Restriction, SamplerChainState, TokenCounts};
use crate::scheduler::{FinishOutcome, FinishReason, NewSequence, SeqId};
use std::collections::VecDeque;

impl Engine {
    /// Queues a request.
    ///
    /// # Errors
    /// [`EngineError::UnknownToken`], [`EngineError::Embedded`], [`EngineError::NoHiddenStates`],
    /// [`EngineError::Sampling`], [`EngineError::Adapter`], [`EngineError::Admission`].
    pub fn add(&mut self, request: Request) -> Result<SeqId, EngineError> {
        self.add_restricted(request, None)
    }

    /// Queues a request whose tokens `constraint` restricts besides.
    ///
    /// # Errors
    /// As [`Engine::add`].
    pub fn add_constrained(&mut self, request: Request, constraint: Box<dyn Constraint>) -> Result<SeqId, EngineError> {
        self.add_restricted(request, Some(constraint))
    }

    fn add_restricted(
        &mut self,
        request: Request,
        constraint: Option<Box<dyn Constraint>>,
    ) -> Result<SeqId, EngineError> {
        let restriction = self.check(&request)?;
        let wanted = RequestedOutputs::of(&request);
        let vocabulary = self.facts.vocabulary as usize;
        let sampling = request.sampling.checked(vocabulary)?;
        let chain = sampling.is_on_host().then(|| SamplerChainState::new(sampling.get().for_chain(), &request.prompt));
        let counts = TokenCounts::new(&request.prompt);
        let restraint = Restraint::new(restriction, constraint, &request.prompt, vocabulary);
        let length = self.whole_length(request.prompt.len(), request.max_new_tokens);
        let rotation =
            self.dynamic_rope.as_ref().and_then(|rope| rope.rotated_for(length).map(|length| (rope, length)));
        let beyond = rotation.filter(|(rope, _)| rope.is_beyond_training()).map(|(rope, _)| rope.original);
        let adapters = self.request_adapters(request.adapters.as_deref())?;
        let mut prompt = request.prompt.clone();
        let (round, rows) = self.embedded.put(&request.embedded, self.embedded_width, &mut prompt)?;
        let salt =
            cache_salt(&request.cache_salt, rotation.map(|(_, length)| length), &adapted(&adapters.used), round)?;
        let seq = self.scheduler.add(NewSequence {
            prompt,
            max_new_tokens: request.max_new_tokens,
            stop_ids: request.stop_ids,
            logits: wanted.rows(),
            cache_salt: salt.clone(),
            priority: request.priority,
            key: request.key,
        })?;
        self.speculator.add(seq, &request.prompt, length, salt);
        self.pending_events.extend(beyond.map(|original| Event::RopeScaled { seq, length, original }));
        let ready = VecDeque::new();
        let state = RequestState {
            sampling,
            counts,
            restraint,
            chain,
            host_sampled: 0,
            wanted,
            length,
            adapters,
            ready,
            _rows: rows,
        };
        self.requests.insert(seq, state);
        Ok(seq)
    }

    /// Checks what the scheduler does not see of a request; what its lists leave of the vocabulary.
    fn check(&self, request: &Request) -> Result<Restriction, EngineError> {
        let vocabulary = self.facts.vocabulary;
        if let Some(at) = request.prompt.iter().position(|&id| id >= vocabulary) {
            return Err(EngineError::UnknownToken { id: request.prompt[at], at, vocabulary });
        }
        if request.hidden.is_some() && !self.options.hidden {
            return Err(EngineError::NoHiddenStates);
        }
        if let Some(value) = request.prompt_logprobs.filter(|&value| value > MAX_LOGPROBS) {
            return Err(ParamError::TooManyLogprobs { field: "prompt_logprobs", value }.into());
        }
        let first = u32::try_from(request.prompt.len()).unwrap_or(u32::MAX);
        let most = request.max_new_tokens.unwrap_or_else(|| self.facts.context.saturating_sub(first));
        let min = request.min_new_tokens;
        if min > most {
            return Err(ParamError::MinAboveMost { min, most }.into());
        }
        let lists = RequestTokenLists {
            allowed: request.allowed_tokens.as_deref(),
            bad_words: &request.bad_words,
            stop_ids: &request.stop_ids,
            first_end: first.saturating_add(min),
            first,
        };
        Ok(Restriction::new(&lists, vocabulary as usize)?)
    }

    /// Positions that a request computes if nothing stops it early: its last token is not computed any more.
    fn whole_length(&self, prompt: usize, max_new_tokens: Option<u32>) -> u32 {
        let new = max_new_tokens.map_or(u64::MAX, u64::from).max(1);
        (prompt as u64).saturating_add(new - 1).min(u64::from(self.facts.context)) as u32
    }

    /// Ends a sequence now; its end is reported here or, if it is being computed, by the next step.
    pub fn finish(&mut self, seq: SeqId, reason: FinishReason) -> Option<Event> {
        match self.scheduler.finish(seq, reason) {
            FinishOutcome::Now(update) => Some(self.report(update)),
            FinishOutcome::AtCommit | FinishOutcome::Unknown => None,
        }
    }

    /// Forgets the cached beginnings of prompts; those of sequences that run stay until they end.
    pub fn reset_cache(&mut self) {
        self.scheduler.forget_cached();
    }

    /// Whether nothing waits or runs.
    pub fn is_idle(&self) -> bool {
        self.scheduler.is_idle()
    }
}
