//! Steps 4 to 8: the largest logit, or a draw among those that the limits keep.

use super::random::uniform;
use super::weight::{CHUNK, MASS_UNIT, chunk_sums, nucleus_floor, weight};
use super::{Sample, SampleFault, SampleInput};
use crate::tensor::Tensor;

/// Temperatures below this mean 0: dividing by them would overflow, and the result is the largest logit anyway.
pub const GREEDY_BELOW: f32 = 1e-5;

impl Sample {
    /// Steps 4 to 8 for sequence `s`.
    pub(super) fn choose(&self, ins: &[&Tensor], s: usize, row: &[f32], best: u32) -> u32 {
        let float = |slot| self.at(ins, slot).floats()[s];
        if !self.draw || float(SampleInput::Temperature) < GREEDY_BELOW {
            return best;
        }
        let (temperature, top_p) = (float(SampleInput::Temperature), float(SampleInput::TopP));
        let top_k = usize::try_from(self.at(ins, SampleInput::TopK).ints()[s]).unwrap_or(0);
        let (max, inverse, floor) = (row[best as usize], 1.0 / temperature, float(SampleInput::MinP));
        let weights: Vec<f32> = row.iter().map(|&x| weight(x, max, inverse, floor)).collect();
        let key = &self.at(ins, SampleInput::Key).bits()[s * 5..][..5];
        let uniform = uniform([key[0], key[1], key[2], key[3], key[4]]);
        let limited = top_k > 0 && top_k < row.len();
        if !limited && top_p >= 1.0 {
            return draw_from_all(&weights, uniform).unwrap_or(best);
        }
        let mass = |token: &usize| (f64::from(weights[*token]) * MASS_UNIT + 0.5) as u64;
        let mut kept = by_likelihood(row);
        let total = if limited {
            kept.truncate(top_k);
            kept.iter().map(mass).sum::<u64>() as f64
        } else {
            let total = chunk_sums(&weights).iter().sum::<f64>();
            let lowest = nucleus_floor(max, temperature, top_p, total, row.len());
            kept.retain(|&token| f64::from(row[token]) >= lowest && weights[token] > 0.0);
            total * MASS_UNIT
        };
        if top_p < 1.0 {
            let (target, mut reached) = ((total * f64::from(top_p)).ceil() as u64, 0);
            let enough = kept.iter().position(|token| {
                reached += mass(token);
                reached >= target
            });
            kept.truncate(enough.map_or(kept.len(), |last| last + 1));
        }
        kept.sort_unstable();
        let target = uniform * kept.iter().map(|&t| f64::from(weights[t])).sum::<f64>();
        pick(kept.into_iter().map(|t| (t, weights[t])), target).unwrap_or(best)
    }
}

/// The first token with the largest logit.
pub(super) fn largest(row: &[f32], fault: impl Fn(u32, f32) -> SampleFault) -> Result<u32, SampleFault> {
    if let Some(bad) = row.iter().position(|x| x.is_nan() || *x == f32::INFINITY) {
        return Err(fault(bad as u32, row[bad]));
    }
    by_likelihood(row).first().map(|&t| t as u32).ok_or(SampleFault::Nothing)
}

/// Tokens above -infinity, the likeliest first, the lower of equals first.
pub(super) fn by_likelihood(row: &[f32]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..row.len()).filter(|&t| row[t] > f32::NEG_INFINITY).collect();
    order.sort_by(|&a, &b| row[b].partial_cmp(&row[a]).unwrap_or(std::cmp::Ordering::Equal));
    order
}

/// Step 8 over a whole row: whole chunks are passed over by their sums.
fn draw_from_all(weights: &[f32], uniform: f64) -> Option<u32> {
    let sums = chunk_sums(weights);
    let mut target = uniform * sums.iter().sum::<f64>();
    let mut last = None;
    for (at, &sum) in sums.iter().enumerate() {
        if sum > 0.0 {
            last = Some(at);
        }
        if target < sum {
            break;
        }
        target -= sum;
    }
    let first = last? * CHUNK;
    pick((first..weights.len().min(first + CHUNK)).map(|t| (t, weights[t])), target)
}

/// The first token at which the running sum of weights exceeds `target`; rounding at the end falls to the last token
/// that has a weight.
fn pick(weighted: impl Iterator<Item = (usize, f32)>, target: f64) -> Option<u32> {
    let (mut reached, mut last) = (0.0, None);
    for (token, weight) in weighted.filter(|(_, weight)| *weight > 0.0) {
        reached += f64::from(weight);
        last = Some(token as u32);
        if reached > target {
            break;
        }
    }
    last
}
