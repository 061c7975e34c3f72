//! `typ_p`: the tokens whose surprise is nearest to the entropy, up to a share.

use super::candidates::Candidates;
use super::entropy::entropy;
use super::input::StageInput;

pub(super) fn apply(candidates: &mut Candidates, input: &StageInput<'_>) {
    let share = f64::from(input.chain.typical_p);
    if share >= 1.0 {
        return;
    }
    candidates.sort();
    let probabilities = candidates.probabilities();
    let expected = entropy(&probabilities);
    let distance = |p: f64| if p > 0.0 { (-libm::log(p) - expected).abs() } else { f64::INFINITY };
    let mut nearest: Vec<(f64, usize)> = probabilities.iter().enumerate().map(|(at, &p)| (distance(p), at)).collect();
    nearest.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut reached = 0.0;
    let enough = nearest.iter().position(|&(_, at)| {
        reached += probabilities[at];
        reached > share
    });
    let kept = &nearest[..enough.map_or(nearest.len(), |last| last + 1)];
    candidates.keep_places(&kept.iter().map(|&(_, at)| at).collect::<Vec<_>>());
}
