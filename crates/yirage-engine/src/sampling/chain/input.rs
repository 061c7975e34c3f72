//! What the stages of a chain may look at.

use super::settings::SamplerChain;
use crate::sampling::{RngKey, TokenCounts};

/// A request's parameters, as a chain reads them.
#[derive(Clone, Copy, Debug)]
pub struct ChainParams<'a> {
    /// Divides the logits; 0 leaves the likeliest.
    pub temperature: f32,
    /// So many likeliest tokens; 0 is all.
    pub top_k: u32,
    /// The share that the likeliest tokens reach; 1 is all.
    pub top_p: f32,
    /// The least share of the likeliest one's probability.
    pub min_p: f32,
    /// Divides logits of tokens in prompt or output.
    pub repetition: f32,
    /// Subtracted for each use in the output.
    pub frequency: f32,
    /// Subtracted for a use in the output.
    pub presence: f32,
    /// Added to logits.
    pub logit_bias: &'a [(u32, f32)],
    /// Key of the random numbers.
    pub seed: u64,
    /// Which of the request's choices it is.
    pub choice: u32,
    /// The chain.
    pub chain: &'a SamplerChain,
}

/// What a stage may look at: the parameters, and what a sequence has come to.
#[derive(Clone, Copy, Debug)]
pub(super) struct StageInput<'a> {
    pub(super) params: ChainParams<'a>,
    /// The tokens of prompt and output by their numbers.
    pub(super) counts: &'a TokenCounts,
    /// The same in order.
    pub(super) history: &'a [u32],
    /// Names the random numbers of the position.
    pub(super) key: RngKey,
}

impl<'a> std::ops::Deref for StageInput<'a> {
    type Target = ChainParams<'a>;

    fn deref(&self) -> &ChainParams<'a> {
        &self.params
    }
}
