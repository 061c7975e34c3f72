//! The sampler: the steps of the module's documentation over one row.

use super::counts::TokenCounts;
use super::error::SampleError;
use super::mask::TokenMask;
use super::params::{CheckedParams, SamplingParams};
use super::philox::RngKey;
use super::select::{Candidate, gather, nucleus, sort_by_likelihood, sort_by_token, top_k};
use super::softmax::{CHUNK, Weights, largest};

/// A token and its log-probability (natural logarithm).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenLogprob {
    /// The token's id.
    pub token: u32,
    /// Logarithm of its probability under the model, -infinity where the model gave that logit.
    pub logprob: f32,
}

/// Log-probabilities at one position, of the raw logits.
#[derive(Clone, Debug, PartialEq)]
pub struct Logprobs {
    /// The sampled token's.
    pub chosen: TokenLogprob,
    /// The likeliest tokens', the likeliest first; as many as asked for.
    pub top: Vec<TokenLogprob>,
}

/// A sampled token.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// The token's id.
    pub token: u32,
    /// Log-probabilities, when the parameters ask for them.
    pub logprobs: Option<Logprobs>,
}

/// Samples rows. Holds only scratch memory, which grows to the size of the vocabulary at first use; the result never
/// depends on what was sampled before.
#[derive(Clone, Debug, Default)]
pub struct Sampler {
    row: Vec<f32>,
    candidates: Vec<Candidate>,
}

impl Sampler {
    /// A sampler without scratch memory.
    pub fn new() -> Self {
        Sampler::default()
    }

    /// Chooses a token for a row of `vocabulary` logits. `counts` are the sequence's tokens so far, `allowed` restricts
    /// the choice, `position` is the position the token will have and `salt` the sequence's (see [`RngKey`]).
    ///
    /// Greedy sampling without mask, bias and penalties reads the row once and copies nothing.
    ///
    /// # Errors
    /// [`SampleError`] when a logit is NaN or +infinity, when nothing is left to choose from, and when the row has
    /// another length than the parameters were checked for.
    pub fn sample(
        &mut self,
        logits: &[f32],
        params: &CheckedParams,
        counts: &TokenCounts,
        allowed: Option<&TokenMask>,
        salt: u64,
        position: u32,
    ) -> Result<Sampled, SampleError> {
        if logits.len() != params.vocabulary() {
            return Err(SampleError::Vocabulary { expected: params.vocabulary(), got: logits.len() });
        }
        let raw = largest(logits, "as the model gave it")?;
        let adjusts = allowed.is_some() || adjusts(params.get());
        let (row, best) = if adjusts {
            adjust(&mut self.row, logits, params.get(), counts, allowed);
            (&self.row[..], largest(&self.row, "after bias and penalties")?)
        } else {
            (logits, raw)
        };
        let token = if params.is_greedy() {
            best.0 as u32
        } else {
            let uniform = RngKey { seed: params.get().seed, salt, position }.uniform();
            draw(row, best.1, params.get(), uniform, &mut self.candidates).unwrap_or(best.0 as u32)
        };
        let logprobs = params.get().logprobs.map(|count| self.logprobs(logits, raw.1, token, count as usize));
        Ok(Sampled { token, logprobs })
    }

    fn logprobs(&mut self, logits: &[f32], max: f32, chosen: u32, count: usize) -> Logprobs {
        let total = Weights { max, inverse_temperature: 1.0, floor: 0.0 }.sum(logits);
        let of = |token: u32, logit: f32| TokenLogprob {
            token,
            logprob: (f64::from(logit) - f64::from(max) - total.ln()) as f32,
        };
        top_k(logits, count, &mut self.candidates);
        sort_by_likelihood(&mut self.candidates);
        Logprobs {
            chosen: of(chosen, logits[chosen as usize]),
            top: self.candidates.iter().map(|candidate| of(candidate.token, candidate.logit)).collect(),
        }
    }
}

/// Whether the parameters change logits (beside the temperature).
fn adjusts(params: &SamplingParams) -> bool {
    let penalties = [params.presence_penalty, params.frequency_penalty, params.repetition_penalty - 1.0];
    !params.logit_bias.is_empty() || penalties.iter().any(|&penalty| penalty != 0.0)
}

/// Steps 1 to 3: mask, bias, penalties, into `row`.
fn adjust(
    row: &mut Vec<f32>,
    logits: &[f32],
    params: &SamplingParams,
    counts: &TokenCounts,
    allowed: Option<&TokenMask>,
) {
    row.clear();
    row.extend_from_slice(logits);
    if let Some(mask) = allowed {
        mask.apply(row);
    }
    for &(token, bias) in &params.logit_bias {
        row[token as usize] += bias;
    }
    counts.penalise(params, row);
}

/// Steps 5 to 9. Whatever was kept, the draw goes through it in order of ids. `None` only if rounding leaves no weight at
/// all, which the likeliest token's weight of 1 rules out.
fn draw(row: &[f32], max: f32, params: &SamplingParams, uniform: f64, candidates: &mut Vec<Candidate>) -> Option<u32> {
    let weights = Weights { max, inverse_temperature: 1.0 / params.temperature, floor: params.min_p };
    let top_k_on = params.top_k > 0 && (params.top_k as usize) < row.len();
    if !top_k_on && params.top_p >= 1.0 {
        return draw_from_all(row, &weights, uniform);
    }
    let weight = |candidate: &Candidate| f64::from(weights.of(candidate.logit));
    let mass = |candidate: &Candidate| (weight(candidate) * MASS_UNIT + 0.5) as u64;
    let total = if top_k_on {
        top_k(row, params.top_k as usize, candidates);
        candidates.iter().map(mass).sum::<u64>() as f64
    } else {
        gather_for_top_p(row, &weights, params, candidates) * MASS_UNIT
    };
    if params.top_p < 1.0 {
        nucleus(candidates, mass, (total * f64::from(params.top_p)).ceil() as u64);
    }
    sort_by_token(candidates);
    let target = uniform * candidates.iter().map(weight).sum::<f64>();
    pick(candidates.iter().map(|candidate| (candidate.token, weight(candidate))), target)
}

/// Top-p adds weights as integers in units of 2^-40 of the likeliest token's: exact in any order, and the sum of a
/// whole vocabulary of 2^22 tokens fits 64 bits.
const MASS_UNIT: f64 = (1u64 << 40) as f64;

/// Without top-k: the tokens among which top-p's cut must lie, and the sum of all weights of the row.
///
/// The kept tokens all lie above (1 - p) * total / vocabulary, because the tokens below that have less than 1 - p of the
/// total together. A quarter of it is used, so that rounding cannot lose one; more candidates than needed change nothing.
fn gather_for_top_p(row: &[f32], weights: &Weights, params: &SamplingParams, candidates: &mut Vec<Candidate>) -> f64 {
    let total = weights.sum(row);
    let least = 0.25 * (1.0 - f64::from(params.top_p)) * total / row.len() as f64;
    let lowest = f64::from(weights.max) + least.ln() * f64::from(params.temperature);
    gather(row, |logit| f64::from(logit) >= lowest, candidates);
    candidates.retain(|candidate| weights.of(candidate.logit) > 0.0);
    total
}

/// The draw from a whole row in order of ids; a chunk before the chosen one costs one addition.
fn draw_from_all(row: &[f32], weights: &Weights, uniform: f64) -> Option<u32> {
    let mut target = uniform * weights.sum(row);
    let mut last = None;
    for (at, chunk) in row.chunks(CHUNK).enumerate() {
        let sum = weights.sum_chunk(chunk);
        if sum > 0.0 {
            last = Some((at, chunk));
        }
        if target < sum {
            break;
        }
        target -= sum;
    }
    let (at, chunk) = last?;
    let within = chunk.iter().enumerate();
    pick(within.map(|(token, &logit)| ((at * CHUNK + token) as u32, f64::from(weights.of(logit)))), target)
}

/// The first token at which the running sum of weights exceeds `target`; rounding at the end falls to the last token
/// that has a weight.
fn pick(weighted: impl Iterator<Item = (u32, f64)>, target: f64) -> Option<u32> {
    let mut reached = 0.0;
    let mut last = None;
    for (token, weight) in weighted.filter(|(_, weight)| *weight > 0.0) {
        reached += weight;
        last = Some(token);
        if reached > target {
            break;
        }
    }
    last
}
