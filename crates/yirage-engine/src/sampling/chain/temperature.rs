//! `temperature`: divides the logits, by a number or by one that follows the entropy; 0 leaves the likeliest token.

use super::candidates::Candidates;
use super::entropy::entropy;
use super::input::StageInput;
use crate::sampling::GREEDY_BELOW;

pub(super) fn apply(candidates: &mut Candidates, input: &StageInput<'_>) {
    let temperature = f64::from(input.temperature);
    let dynamic = input.chain.dynamic_temperature;
    if dynamic.range <= 0.0 {
        return divide(candidates, temperature);
    }
    let count = candidates.kept().len();
    if count < 2 {
        return;
    }
    candidates.sort();
    let (least, most) = ((temperature - f64::from(dynamic.range)).max(0.0), temperature + f64::from(dynamic.range));
    let share = entropy(&candidates.probabilities()) / libm::log(count as f64);
    divide(candidates, least + (most - least) * libm::pow(share, f64::from(dynamic.exponent)));
}

/// Divides the logits; below what can divide them, everything but the likeliest gets probability 0.
pub(super) fn divide(candidates: &mut Candidates, temperature: f64) {
    if temperature >= f64::from(GREEDY_BELOW) {
        return candidates.change(|c| c.logit = (f64::from(c.logit) / temperature) as f32);
    }
    let best = candidates.likeliest().token;
    candidates.change(|c| {
        if c.token != best {
            c.logit = f32::NEG_INFINITY;
        }
    });
}
