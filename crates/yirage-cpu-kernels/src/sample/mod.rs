//! From a row of logits to a token: the steps of the op `sample`, each in as few passes over the row as it needs.
//!
//! Greedy sampling without adjustments reads the row once and copies nothing; a draw adds one pass for the sum of the
//! weights; filters sort nothing but the few tokens that are kept. Arithmetic is the op's own, to the bit. Deliberately
//! unknown here: batches, plans, threads.

pub mod select;
mod weights;

use crate::isa::Isa;
use select::{TokenLogit, gather, nucleus, sort_by_likelihood, sort_by_token, top_k};
use weights::{SoftmaxWeights, largest};
use yirage_ir::op::sample::{CHUNK, GREEDY_BELOW, MASS_UNIT, SampleFault, logprob, nucleus_floor};

/// Memory that sampling a row needs, for one worker at a time.
#[derive(Debug)]
pub struct SamplingScratch {
    row: Vec<f32>,
    candidates: Vec<TokenLogit>,
}

impl SamplingScratch {
    /// Room for rows of `vocabulary` logits: for a changed copy, and for tokens that are selected.
    pub fn new(vocabulary: usize, copies: bool, selects: bool) -> SamplingScratch {
        let room = |wanted: bool| if wanted { vocabulary } else { 0 };
        SamplingScratch { row: Vec::with_capacity(room(copies)), candidates: Vec::with_capacity(room(selects)) }
    }

    /// Bytes held.
    pub fn bytes(&self) -> usize {
        self.row.capacity() * size_of::<f32>() + self.candidates.capacity() * size_of::<TokenLogit>()
    }
}

/// How tokens in a sequence's history are penalised.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Penalties {
    /// Divides positive logits and multiplies the others.
    pub repetition: f32,
    /// Subtracted once a use.
    pub frequency: f32,
    /// Subtracted from what was used at all.
    pub presence: f32,
}

/// What changes a row before a token is chosen.
#[derive(Clone, Copy, Debug, Default)]
pub struct Adjustments<'a> {
    /// A bit a token; absent bits and those that are 0 forbid it.
    pub allowed: Option<&'a [u32]>,
    /// (any, token) pairs, one for each of `bias`.
    pub bias_at: &'a [i32],
    /// What is added.
    pub bias: &'a [f32],
    /// What is done to the tokens of the history.
    pub penalties: Option<Penalties>,
    /// (any, token, uses) triples.
    pub history: &'a [i32],
}

impl Adjustments<'_> {
    /// Whether the row stays as it is.
    fn none(&self) -> bool {
        let masked = self.allowed.is_some_and(|words| words.iter().any(|w| *w != u32::MAX));
        !masked && self.bias.is_empty() && (self.penalties.is_none() || self.history.is_empty())
    }

    fn apply(&self, row: &mut [f32]) {
        if let Some(words) = self.allowed {
            for (at, logits) in row.chunks_mut(32).enumerate() {
                let word = words.get(at).copied().unwrap_or(0);
                for (bit, logit) in logits.iter_mut().enumerate() {
                    *logit = if word >> bit & 1 == 0 { f32::NEG_INFINITY } else { *logit };
                }
            }
        }
        for (at, bias) in self.bias_at.chunks_exact(2).zip(self.bias) {
            if let Some(logit) = row.get_mut(at[1] as usize) {
                *logit += bias;
            }
        }
        let Some(p) = self.penalties else { return };
        for entry in self.history.chunks_exact(3) {
            let Some(logit) = row.get_mut(entry[1] as usize) else { continue };
            *logit = if *logit > 0.0 { *logit / p.repetition } else { *logit * p.repetition };
            if entry[2] > 0 {
                *logit = *logit - p.frequency * entry[2] as f32 - p.presence;
            }
        }
    }
}

/// How a token is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawParams {
    /// Divides the logits; below [`GREEDY_BELOW`] the largest is taken.
    pub temperature: f32,
    /// Likeliest tokens kept; 0 keeps all.
    pub top_k: usize,
    /// Share of the weights kept; 1 keeps all.
    pub top_p: f32,
    /// Least weight kept, relative to the likeliest.
    pub min_p: f32,
    /// The random number.
    pub uniform: f64,
}

/// A chosen token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenChoice {
    /// Its id.
    pub token: u32,
    /// The largest logit as given.
    pub largest: f32,
}

/// Chooses a token of a row; without `draw`, that of the largest logit.
///
/// # Errors
/// The op's faults.
pub fn sample(
    isa: Isa,
    logits: &[f32],
    adjustments: &Adjustments<'_>,
    draw: Option<DrawParams>,
    scratch: &mut SamplingScratch,
) -> Result<TokenChoice, SampleFault> {
    let given = largest(isa, logits, |token, value| SampleFault::InputLogit { token, value })?;
    let (row, best) = if adjustments.none() {
        (logits, given)
    } else {
        scratch.row.clear();
        scratch.row.extend_from_slice(logits);
        adjustments.apply(&mut scratch.row);
        let best = largest(isa, &scratch.row, |token, value| SampleFault::Adjusted { token, value })?;
        (&scratch.row[..], best)
    };
    let drawn = draw.filter(|d| d.temperature >= GREEDY_BELOW);
    // Rounding leaves no weight at all only if the likeliest token's were not 1.
    let token = drawn.and_then(|d| self::draw(isa, row, best.1, &d, &mut scratch.candidates));
    Ok(TokenChoice { token: token.unwrap_or(best.0 as u32), largest: given.1 })
}

/// Steps 5 to 8.
fn draw(isa: Isa, row: &[f32], max: f32, d: &DrawParams, candidates: &mut Vec<TokenLogit>) -> Option<u32> {
    let weights = SoftmaxWeights { max, inverse: 1.0 / d.temperature, floor: d.min_p };
    let limited = d.top_k > 0 && d.top_k < row.len();
    if !limited && d.top_p >= 1.0 {
        return draw_from_all(isa, row, &weights, d.uniform);
    }
    let weight = |candidate: &TokenLogit| f64::from(weights.of(candidate.logit));
    let mass = |candidate: &TokenLogit| (weight(candidate) * MASS_UNIT + 0.5) as u64;
    let total = if limited {
        top_k(isa, row, d.top_k, candidates);
        candidates.iter().map(mass).sum::<u64>() as f64
    } else {
        let total = weights.sum(isa, row);
        gather(isa, row, nucleus_floor(max, d.temperature, d.top_p, total, row.len()), candidates);
        candidates.retain(|candidate| weights.of(candidate.logit) > 0.0);
        total * MASS_UNIT
    };
    if d.top_p < 1.0 {
        nucleus(candidates, mass, (total * f64::from(d.top_p)).ceil() as u64);
    }
    sort_by_token(candidates);
    let target = d.uniform * candidates.iter().map(weight).sum::<f64>();
    pick(candidates.iter().map(|candidate| (candidate.token, weight(candidate))), target)
}

/// The draw from a whole row in order of ids; a chunk before the chosen one costs one addition.
fn draw_from_all(isa: Isa, row: &[f32], weights: &SoftmaxWeights, uniform: f64) -> Option<u32> {
    let mut target = uniform * weights.sum(isa, row);
    let mut last = None;
    for (at, chunk) in row.chunks(CHUNK).enumerate() {
        let sum = weights.sum(isa, chunk);
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

/// The log-probability of the sampled token; those of the likeliest tokens go to `tokens` and `values`, which keep what
/// they hold where there are fewer.
pub fn logprobs(
    isa: Isa,
    logits: &[f32],
    sampled: TokenChoice,
    scratch: &mut SamplingScratch,
    tokens: &mut [i32],
    values: &mut [f32],
) -> f32 {
    let total = SoftmaxWeights { max: sampled.largest, inverse: 1.0, floor: 0.0 }.sum(isa, logits);
    let of = |logit: f32| logprob(logit, sampled.largest, total);
    if !tokens.is_empty() {
        top_k(isa, logits, tokens.len(), &mut scratch.candidates);
        sort_by_likelihood(&mut scratch.candidates);
        for ((candidate, token), value) in scratch.candidates.iter().zip(tokens).zip(values) {
            (*token, *value) = (candidate.token as i32, of(candidate.logit));
        }
    }
    of(logits[sampled.token as usize])
}
