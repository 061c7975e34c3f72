//! `min_p`: no token below a share of the likeliest one's probability (Nguyen et al., "Turning up the heat", 2024).

use super::candidates::Candidates;
use super::input::StageInput;

pub(super) fn apply(candidates: &mut Candidates, input: &StageInput<'_>) {
    if input.min_p <= 0.0 {
        return;
    }
    let least = f64::from(candidates.likeliest().logit) + libm::log(f64::from(input.min_p));
    candidates.retain(|c| f64::from(c.logit) >= least);
}
