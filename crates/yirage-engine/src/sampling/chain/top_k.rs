//! `top_k`: so many likeliest tokens.

use super::candidates::Candidates;
use super::input::StageInput;

pub(super) fn apply(candidates: &mut Candidates, input: &StageInput<'_>) {
    let k = input.top_k as usize;
    if k > 0 {
        candidates.keep_likeliest(k);
    }
}
