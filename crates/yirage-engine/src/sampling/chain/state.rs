//! A request's chain and what it remembers.

use super::candidates::Candidates;
use super::input::{ChainParams, StageInput};
use super::mirostat;
use super::stage::SamplerStage;
use crate::sampling::{RngKey, SampleError, TokenCounts, TokenMask};

/// A token that a chain chose.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChainChoice {
    /// The token's id.
    pub token: u32,
    /// Its probability among what was left.
    pub probability: f64,
}

/// What a chain remembers of a sequence: its tokens in order, and mirostat's limit.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplerChainState {
    history: Vec<u32>,
    limit: f64,
}

impl SamplerChainState {
    /// The state before a sequence's first token.
    pub fn new(params: ChainParams<'_>, prompt: &[u32]) -> SamplerChainState {
        SamplerChainState { history: prompt.to_vec(), limit: params.chain.mirostat.initial() }
    }

    /// What the chain leaves of a row of logits, the drawing aside.
    ///
    /// # Errors
    /// A logit that is no number; nothing to choose from.
    pub fn candidates(
        &self,
        row: &[f32],
        (params, counts, allowed): (ChainParams<'_>, &TokenCounts, Option<&TokenMask>),
        position: u32,
    ) -> Result<Candidates, SampleError> {
        check(row, "as the model gave it")?;
        let mut row = row.to_vec();
        if let Some(allowed) = allowed {
            let masked = row.iter_mut().enumerate().filter(|(token, _)| !allowed.allows(*token as u32));
            masked.for_each(|(_, logit)| *logit = f32::NEG_INFINITY);
        }
        for &(token, bias) in params.logit_bias {
            row[token as usize] += bias;
        }
        let mut candidates = Candidates::of_row(&row);
        let key = key_of(params, position);
        let input = StageInput { params, counts, history: &self.history, key };
        check(&row, "after bias and penalties")?;
        if row.iter().all(|logit| *logit == f32::NEG_INFINITY) {
            return Err(SampleError::NoCandidate { vocabulary: row.len() });
        }
        if params.chain.mirostat.version != 0 {
            mirostat::apply(&mut candidates, &input, self.limit, row.len());
            return Ok(candidates);
        }
        for stage in SamplerStage::of(params.chain) {
            stage.apply(&mut candidates, &input);
        }
        Ok(candidates)
    }

    /// Chooses a token for a row.
    ///
    /// # Errors
    /// As [`SamplerChainState::candidates`].
    pub fn choose(
        &self,
        row: &[f32],
        of: (ChainParams<'_>, &TokenCounts, Option<&TokenMask>),
        position: u32,
    ) -> Result<ChainChoice, SampleError> {
        let candidates = self.candidates(row, of, position)?;
        let (token, probability) = candidates.draw(key_of(of.0, position).uniform());
        Ok(ChainChoice { token, probability })
    }

    /// Takes the sequence's next token.
    pub fn push(&mut self, params: ChainParams<'_>, choice: ChainChoice) {
        self.history.push(choice.token);
        self.limit = params.chain.mirostat.next(self.limit, choice.probability);
    }
}

fn key_of(params: ChainParams<'_>, position: u32) -> RngKey {
    RngKey { seed: params.seed, choice: params.choice, position }
}

/// Refuses a logit that is no number, or larger than any.
fn check(row: &[f32], stage: &'static str) -> Result<(), SampleError> {
    match row.iter().position(|x| x.is_nan() || *x == f32::INFINITY) {
        Some(token) => Err(SampleError::NotFinite { token, value: row[token], stage }),
        None => Ok(()),
    }
}
