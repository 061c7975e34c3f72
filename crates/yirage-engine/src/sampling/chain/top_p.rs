//! `top_p`: the fewest likeliest tokens that reach a share (Holtzman et al., "The curious case of neural text degeneration",
//! ICLR 2020).

use super::candidates::Candidates;
use super::input::StageInput;

pub(super) fn apply(candidates: &mut Candidates, input: &StageInput<'_>) {
    let share = f64::from(input.top_p);
    if share >= 1.0 {
        return;
    }
    candidates.sort();
    let mut reached = 0.0;
    let enough = candidates.probabilities().into_iter().position(|probability| {
        reached += probability;
        reached >= share
    });
    candidates.keep_likeliest(enough.map_or(usize::MAX, |last| last + 1));
}
