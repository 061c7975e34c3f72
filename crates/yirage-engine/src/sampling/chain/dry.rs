//! `dry`: the longer a token would go on with something that was said already, the more its logit loses ("DRY",
//! <https://github.com/oobabooga/text-generation-webui/pull/5677>).

use super::candidates::Candidates;
use super::input::StageInput;
use std::collections::HashMap;

/// The natural logarithm of the largest f32, as llama.cpp has it.
const LARGEST_LOG: f64 = 88.722_839_1;

pub(super) fn apply(candidates: &mut Candidates, input: &StageInput<'_>) {
    let dry = &input.chain.dry;
    if dry.multiplier == 0.0 {
        return;
    }
    let looked_at = dry.last_tokens.map_or(usize::MAX, |n| n as usize).min(input.history.len());
    let last = &input.history[input.history.len() - looked_at..];
    let allowed = dry.allowed_length as usize;
    if last.len() <= allowed {
        return;
    }
    let limit = dry.breakers.unbroken(last);
    if limit < allowed {
        return;
    }
    let repeated = longest_by_next(last, limit, allowed);
    if repeated.is_empty() {
        return;
    }
    let base = f64::from(dry.base);
    // Only a base above this can overflow.
    let most = if base > 1.000_001 { (LARGEST_LOG / libm::log(base)) as usize } else { usize::MAX };
    let most = if most == 0 { usize::MAX } else { most };
    candidates.change(|c| {
        let Some(&length) = repeated.get(&c.token).filter(|_| !dry.breakers.is_one(c.token)) else { return };
        let exponent = (length - allowed).min(most);
        c.logit -= (f64::from(dry.multiplier) * libm::pow(base, exponent as f64)) as f32;
    });
}

/// For each token that would go on with a repetition of `allowed` tokens or more: how many of the last tokens, `limit` at
/// most, stood before it.
fn longest_by_next(last: &[u32], limit: usize, allowed: usize) -> HashMap<u32, usize> {
    let mut longest = HashMap::new();
    let repeats = suffix_repeats(last);
    for (end, &length) in repeats.iter().enumerate().take(last.len() - 1) {
        let length = length.min(limit);
        if length >= allowed {
            let known = longest.entry(last[end + 1]).or_insert(length);
            *known = (*known).max(length);
        }
    }
    longest
}

/// For each place: how many tokens up to it are those at the end of all. The Z-algorithm on the tokens in reverse, so each is
/// looked at once.
fn suffix_repeats(last: &[u32]) -> Vec<usize> {
    let count = last.len();
    let back = |at: usize| last[count - 1 - at];
    let mut repeats = vec![0; count];
    // The newest stretch that is known to repeat the end: its beginning, and where it is over.
    let (mut begins, mut over) = (0, 0);
    for at in 1..count {
        let mut length = if at < over { (over - at).min(repeats[at - begins]) } else { 0 };
        while at + length < count && back(length) == back(at + length) {
            length += 1;
        }
        repeats[at] = length;
        if at + length > over {
            (begins, over) = (at, at + length);
        }
    }
    repeats.reverse();
    repeats
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_are_those_of_comparing_every_pair() {
        let mut state = 7u32;
        for length in 1..60 {
            let last: Vec<u32> = (0..length)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    state >> 30
                })
                .collect();
            let naive = |end: usize| {
                let pairs = last[..=end].iter().rev().zip(last.iter().rev());
                pairs.take_while(|(a, b)| a == b).count()
            };
            let wanted: Vec<usize> = (0..length - 1).map(naive).collect();
            assert_eq!(suffix_repeats(&last)[..length - 1], wanted, "{last:?}");
        }
    }
}
