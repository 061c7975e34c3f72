//! `top_n_sigma`: logits within so many standard deviations of the largest; the others get probability 0.

use super::candidates::Candidates;
use super::input::StageInput;

pub(super) fn apply(candidates: &mut Candidates, input: &StageInput<'_>) {
    let n = f64::from(input.chain.top_n_sigma);
    if n <= 0.0 || candidates.kept().len() < 2 {
        return;
    }
    let finite = || candidates.kept().iter().map(|c| f64::from(c.logit)).filter(|logit| logit.is_finite());
    let count = finite().count().max(1) as f64;
    let mean = finite().sum::<f64>() / count;
    let variance = finite().map(|logit| (logit - mean) * (logit - mean)).sum::<f64>() / count;
    let least = f64::from(candidates.likeliest().logit) - n * variance.sqrt();
    candidates.change(|c| {
        if f64::from(c.logit) < least {
            c.logit = f32::NEG_INFINITY;
        }
    });
}
