//! `penalties`: repetition, frequency and presence, as for requests that the device samples.

use super::candidates::Candidates;
use super::input::StageInput;
use std::collections::HashMap;

pub(super) fn apply(candidates: &mut Candidates, input: &StageInput<'_>) {
    let repetition = input.repetition;
    if repetition == 1.0 && input.frequency == 0.0 && input.presence == 0.0 {
        return;
    }
    let uses: HashMap<u32, u32> = input.counts.history(repetition != 1.0).collect();
    candidates.change(|c| {
        let Some(&uses) = uses.get(&c.token) else { return };
        c.logit = if c.logit > 0.0 { c.logit / repetition } else { c.logit * repetition };
        if uses > 0 {
            c.logit = c.logit - input.frequency * uses as f32 - input.presence;
        }
    });
}
