//! The likeliest tokens of a row without sorting the row.

use std::cmp::Ordering;

use super::softmax::chunk_max;

/// A token and its logit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) token: u32,
    pub(super) logit: f32,
}

/// Larger logits first, smaller ids first among equals. Rows were checked for NaN before.
fn likelier(a: &Candidate, b: &Candidate) -> Ordering {
    b.logit.partial_cmp(&a.logit).unwrap_or(Ordering::Equal).then(a.token.cmp(&b.token))
}

/// Logits that are skipped together when none of them can be among the best.
const SKIP: usize = 64;

/// Replaces `best` by the `k` likeliest tokens of `row` (fewer when fewer are above -infinity), in no order.
pub(super) fn top_k(row: &[f32], k: usize, best: &mut Vec<Candidate>) {
    best.clear();
    let limit = k.saturating_mul(2).max(1024);
    let mut floor = f32::NEG_INFINITY;
    for (at, chunk) in row.chunks(SKIP).enumerate() {
        if chunk_max(chunk).0 <= floor {
            continue;
        }
        for (within, &logit) in chunk.iter().enumerate() {
            if logit > floor {
                best.push(Candidate { token: (at * SKIP + within) as u32, logit });
            }
        }
        if best.len() >= limit {
            keep(best, k);
            // Later tokens of equal logit have larger ids and lose against those already kept.
            floor = best.iter().fold(f32::INFINITY, |floor, candidate| floor.min(candidate.logit));
        }
    }
    keep(best, k);
}

/// Keeps the `k` likeliest.
fn keep(best: &mut Vec<Candidate>, k: usize) {
    if best.len() > k {
        best.select_nth_unstable_by(k, likelier);
        best.truncate(k);
    }
}

/// Replaces `all` by the tokens of `row` that `wanted` accepts.
pub(super) fn gather(row: &[f32], wanted: impl Fn(f32) -> bool, all: &mut Vec<Candidate>) {
    all.clear();
    let accepted = row.iter().enumerate().filter(|(_, logit)| wanted(**logit));
    all.extend(accepted.map(|(token, &logit)| Candidate { token: token as u32, logit }));
}

/// Sorts the likeliest first, only as far as needed: ever longer beginnings, until `enough` accepts the sorted
/// beginning. Returns its length.
pub(super) fn sort_until(all: &mut [Candidate], mut enough: impl FnMut(&[Candidate]) -> Option<usize>) -> usize {
    let mut sorted = 0;
    let mut step = 128;
    while sorted < all.len() {
        let next = all.len().min(sorted + step);
        let rest = &mut all[sorted..];
        if next < sorted + rest.len() {
            rest.select_nth_unstable_by(next - sorted, likelier);
        }
        rest[..next - sorted].sort_unstable_by(likelier);
        if let Some(length) = enough(&all[sorted..next]) {
            return sorted + length;
        }
        sorted = next;
        step *= 4;
    }
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(length: usize, kinds: u32) -> Vec<f32> {
        (0..length as u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) % kinds).map(|kind| kind as f32).collect()
    }

    #[test]
    fn top_k_is_the_beginning_of_the_sorted_row() {
        for (length, kinds) in [(1, 1), (50, 5), (3000, 7), (9000, 100_000)] {
            let row = row(length, kinds);
            let mut sorted = Vec::new();
            gather(&row, |_| true, &mut sorted);
            sorted.sort_by(likelier);
            for k in [1, 2, 40, 600, length] {
                let mut best = Vec::new();
                top_k(&row, k, &mut best);
                best.sort_by(likelier);
                assert_eq!(best, sorted[..k.min(length)], "{length} of {kinds} kinds, k {k}");
            }
        }
    }

    #[test]
    fn masked_tokens_are_never_among_the_best() {
        let mut row = vec![f32::NEG_INFINITY; 3000];
        row[2000] = -5.0;
        let mut best = Vec::new();
        top_k(&row, 10, &mut best);
        assert_eq!(best, [Candidate { token: 2000, logit: -5.0 }]);
    }

    #[test]
    fn sorting_stops_where_it_is_enough() {
        let row = row(5000, 1_000_000);
        let mut sorted = Vec::new();
        gather(&row, |_| true, &mut sorted);
        let mut all = sorted.clone();
        sorted.sort_by(likelier);
        let mut seen = Vec::new();
        let length = sort_until(&mut all, |more| {
            seen.extend_from_slice(more);
            (seen.len() >= 700).then(|| 700 - (seen.len() - more.len()))
        });
        assert_eq!(length, 700);
        assert_eq!(all[..700], sorted[..700]);
        assert_eq!(sort_until(&mut all, |_| None), 5000);
        assert_eq!(all, sorted);
    }
}
