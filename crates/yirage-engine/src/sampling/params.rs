//! A request's sampling parameters and their ranges.

use super::chain::{ChainParams, SamplerChain};
use super::error::ParamError;
use crate::limits::{MAX_LOGIT_BIAS, MAX_LOGPROBS};
use yirage_ir::op::sample::GREEDY_BELOW;

/// How a request wants its tokens chosen. The order of the steps is in the module's documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingParams {
    /// Divides the logits; 0 (or below [`GREEDY_BELOW`]) takes the largest logit. 0 to 100.
    pub temperature: f32,
    /// Keeps this many likeliest tokens; 0 keeps all.
    pub top_k: u32,
    /// Keeps the fewest likeliest tokens that reach this share; 1 keeps all. Above 0, at most 1.
    pub top_p: f32,
    /// Drops tokens below this share of the likeliest one's probability; 0 drops none. 0 to 1.
    pub min_p: f32,
    /// Subtracted from the logit of each token the output has. -2 to 2.
    pub presence_penalty: f32,
    /// Subtracted from a token's logit once per occurrence in the output. -2 to 2.
    pub frequency_penalty: f32,
    /// Divides positive and multiplies negative logits of tokens in the prompt or output (Keskar et al. 2019, CTRL).
    /// 1 does nothing. 0.01 to 100.
    pub repetition_penalty: f32,
    /// Added to the logits of these tokens. Finite; each token once.
    pub logit_bias: Vec<(u32, f32)>,
    /// Key of the random numbers.
    pub seed: u64,
    /// Which of a request's choices this is, from 0: those of one seed draw numbers of their own.
    pub choice: u32,
    /// Report the chosen token's log-probability and those of this many likeliest tokens.
    pub logprobs: Option<u32>,
    /// Samplers that run on the host; where it asks for any, all of the choice is made there.
    pub chain: SamplerChain,
}

impl Default for SamplingParams {
    /// The model's own distribution: temperature 1, no filter, no penalty, seed 0.
    fn default() -> Self {
        SamplingParams {
            temperature: 1.0,
            top_k: 0,
            top_p: 1.0,
            min_p: 0.0,
            presence_penalty: 0.0,
            frequency_penalty: 0.0,
            repetition_penalty: 1.0,
            logit_bias: Vec::new(),
            seed: 0,
            choice: 0,
            logprobs: None,
            chain: SamplerChain::default(),
        }
    }
}

impl SamplingParams {
    /// Temperature 0: the largest logit.
    pub fn greedy() -> Self {
        SamplingParams { temperature: 0.0, ..SamplingParams::default() }
    }

    /// What a chain of samplers reads of them.
    pub fn for_chain(&self) -> ChainParams<'_> {
        ChainParams {
            temperature: self.temperature,
            top_k: self.top_k,
            top_p: self.top_p,
            min_p: self.min_p,
            repetition: self.repetition_penalty,
            frequency: self.frequency_penalty,
            presence: self.presence_penalty,
            logit_bias: &self.logit_bias,
            seed: self.seed,
            choice: self.choice,
            chain: &self.chain,
        }
    }

    /// Checks every parameter for a model with `vocabulary` tokens.
    ///
    /// # Errors
    /// [`ParamError`] for the first parameter out of range.
    pub fn checked(self, vocabulary: usize) -> Result<CheckedParams, ParamError> {
        if vocabulary == 0 {
            return Err(ParamError::EmptyVocabulary);
        }
        let ranges = [
            ("temperature", self.temperature, 0.0..=100.0, "between 0 and 100"),
            ("top_p", self.top_p, f32::MIN_POSITIVE..=1.0, "above 0 and at most 1"),
            ("min_p", self.min_p, 0.0..=1.0, "between 0 and 1"),
            ("presence_penalty", self.presence_penalty, -2.0..=2.0, "between -2 and 2"),
            ("frequency_penalty", self.frequency_penalty, -2.0..=2.0, "between -2 and 2"),
            ("repetition_penalty", self.repetition_penalty, 0.01..=100.0, "between 0.01 and 100"),
        ];
        for (field, value, range, allowed) in ranges {
            if !range.contains(&value) {
                return Err(ParamError::OutOfRange { field, value, allowed });
            }
        }
        if let Some(value) = self.logprobs
            && value > MAX_LOGPROBS
        {
            return Err(ParamError::TooManyLogprobs { field: "logprobs", value });
        }
        self.chain.check()?;
        self.check_bias(vocabulary)?;
        Ok(CheckedParams { params: self, vocabulary })
    }

    fn check_bias(&self, vocabulary: usize) -> Result<(), ParamError> {
        if self.logit_bias.len() > MAX_LOGIT_BIAS {
            return Err(ParamError::TooManyBiases { count: self.logit_bias.len() });
        }
        for &(token, value) in &self.logit_bias {
            if token as usize >= vocabulary {
                return Err(ParamError::UnknownToken { field: "logit_bias", token, vocabulary });
            }
            if !value.is_finite() {
                return Err(ParamError::OutOfRange { field: "logit_bias", value, allowed: "finite" });
            }
        }
        let mut tokens: Vec<u32> = self.logit_bias.iter().map(|&(token, _)| token).collect();
        tokens.sort_unstable();
        match tokens.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(ParamError::DuplicateToken { token: pair[0] }),
            None => Ok(()),
        }
    }
}

/// Parameters that were checked for one vocabulary; the only kind a sampler takes.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedParams {
    params: SamplingParams,
    vocabulary: usize,
}

/// Added to the logit of the token that is to be taken: more than any logit of use, and far from overflowing.
const SURE: f32 = 1e30;

impl CheckedParams {
    /// Parameters under which `token`, which the vocabulary has, is taken if its logit is a number; with its
    /// log-probability and those of the `top` likeliest tokens, which the number is checked for.
    pub(crate) fn taking(token: u32, top: u32, vocabulary: usize) -> CheckedParams {
        let logit_bias = vec![(token, SURE)];
        CheckedParams {
            params: SamplingParams { logit_bias, logprobs: Some(top), ..SamplingParams::greedy() },
            vocabulary,
        }
    }

    /// The parameters.
    pub fn get(&self) -> &SamplingParams {
        &self.params
    }

    /// Tokens in the vocabulary they were checked for.
    pub fn vocabulary(&self) -> usize {
        self.vocabulary
    }

    /// Whether the host chooses, and not the device.
    pub fn is_on_host(&self) -> bool {
        !self.params.chain.is_off()
    }

    /// Whether a sequence's history changes its logits.
    pub fn has_penalties(&self) -> bool {
        let p = &self.params;
        p.presence_penalty != 0.0 || p.frequency_penalty != 0.0 || p.repetition_penalty != 1.0
    }

    /// Whether the largest logit is taken.
    pub fn is_greedy(&self) -> bool {
        self.params.temperature < GREEDY_BELOW
    }
}
