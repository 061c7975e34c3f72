//! `xtc`: now and then the likeliest tokens are dropped, all above a probability but the last of them.

use super::candidates::Candidates;
use super::input::StageInput;

/// The stream of its random numbers: not the one that draws the token.
const STREAM: u32 = 1;

pub(super) fn apply(candidates: &mut Candidates, input: &StageInput<'_>) {
    let (probability, threshold) = (f64::from(input.chain.xtc.probability), input.chain.xtc.threshold);
    if probability <= 0.0 || threshold > 0.5 || candidates.kept().len() < 2 {
        return;
    }
    if input.key.uniform_of(STREAM) > probability {
        return;
    }
    candidates.sort();
    let above = candidates.probabilities().into_iter().take_while(|p| *p >= f64::from(threshold)).count();
    candidates.drop_likeliest(above.saturating_sub(1));
}
