//! What one sequence gets of its row: a token and its log-probabilities, or why there is none.

use super::choose::{by_likelihood, largest};
use super::weight::{chunk_sums, logprob, weight};
use super::{Sample, SampleFault, SampleInput};
use crate::tensor::Tensor;

/// What a row gave.
pub(super) struct SampledToken {
    pub(super) token: u32,
    pub(super) logprob: f32,
    pub(super) top: Vec<(i32, f32)>,
}

impl Sample {
    /// The token of sequence `s`.
    pub(super) fn sequence(&self, ins: &[&Tensor], s: usize) -> Result<SampledToken, SampleFault> {
        let logits = self.at(ins, SampleInput::Logits);
        let row = usize::try_from(self.at(ins, SampleInput::Row).ints()[s]).ok().filter(|&r| r < logits.rows());
        let given = logits.row(row.ok_or(SampleFault::Nothing)?);
        let largest_given = largest(&given, |token, value| SampleFault::InputLogit { token, value })?;
        let mut row = given.clone();
        self.adjust(ins, s, &mut row);
        let best = largest(&row, |token, value| SampleFault::Adjusted { token, value })?;
        let token = self.choose(ins, s, &row, best);
        let max = given[largest_given as usize];
        let weights: Vec<f32> = given.iter().map(|&x| weight(x, max, 1.0, 0.0)).collect();
        let total = chunk_sums(&weights).iter().sum::<f64>();
        let of = |token: usize| logprob(given[token], max, total);
        let top = by_likelihood(&given).into_iter().take(self.top as usize).map(|t| (t as i32, of(t))).collect();
        Ok(SampledToken { token, logprob: of(token as usize), top })
    }
}
