//! What is kept of a request beside the scheduler's sequence.

use super::request::Request;
use super::request_adapters::RequestAdapters;
use super::restraint::Restraint;
use crate::embedded::EmbeddingRows;
use crate::sampling::{CheckedParams, PositionLogprobs, SamplerChainState, TokenCounts};
use crate::scheduler::LogitsWanted;
use std::collections::VecDeque;
use std::sync::Arc;

/// What the engine keeps of a request while its sequence runs.
pub(super) struct RequestState {
    pub(super) sampling: CheckedParams,
    pub(super) counts: TokenCounts,
    pub(super) restraint: Restraint,
    /// What its chain of samplers remembers, where the host chooses its tokens.
    pub(super) chain: Option<SamplerChainState>,
    /// Tokens that the host chose.
    pub(super) host_sampled: usize,
    pub(super) wanted: RequestedOutputs,
    /// Positions that will be computed if it is not stopped early.
    pub(super) length: u32,
    /// What it gets of adapters.
    pub(super) adapters: RequestAdapters,
    /// What belongs to the verified tokens that the scheduler has not delivered yet.
    pub(super) ready: VecDeque<VerifiedToken>,
    /// Rows of its prompt, which are there for as long as this holds them.
    pub(super) _rows: Vec<Arc<EmbeddingRows>>,
}

impl RequestState {
    /// Whether the host has to see a token before the next one can be chosen or reported.
    pub(super) fn waits_for_host(&self) -> bool {
        self.sampling.has_penalties() || self.chain.is_some() || self.restraint.looks_back() || self.wanted.anything()
    }
}

/// What a request wants to be told beside its tokens.
pub(super) struct RequestedOutputs {
    pub(super) logits: Option<LogitsWanted>,
    pub(super) hidden: Option<LogitsWanted>,
    /// For log-probabilities of the prompt: how many likeliest tokens, and the prompt.
    pub(super) prompt: Option<(u32, Vec<u32>)>,
}

impl RequestedOutputs {
    pub(super) fn of(request: &Request) -> RequestedOutputs {
        let prompt = request.prompt_logprobs.map(|top| (top, request.prompt.clone()));
        RequestedOutputs { logits: request.logits, hidden: request.hidden, prompt }
    }

    /// The rows that have to be computed for it.
    pub(super) fn rows(&self) -> LogitsWanted {
        let all = [self.logits, self.hidden].contains(&Some(LogitsWanted::All)) || self.prompt.is_some();
        if all { LogitsWanted::All } else { LogitsWanted::Last }
    }

    fn anything(&self) -> bool {
        self.logits.is_some() || self.hidden.is_some() || self.prompt.is_some()
    }
}

/// What belongs to a token of a verified run.
pub(super) struct VerifiedToken {
    /// Its row of the last step.
    pub(super) row: usize,
    /// The position of that row.
    pub(super) position: usize,
    pub(super) logprobs: Option<PositionLogprobs>,
}
