//! The likeliest tokens of a row without sorting the row.

use super::weights::chunk_max;
use crate::isa::Isa;
use crate::simd::{Lanes, WithLanes, launch};
use std::cmp::Ordering;

/// A token and its logit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TokenLogit {
    /// The token.
    pub token: u32,
    /// Its logit, no NaN.
    pub logit: f32,
}

/// Larger logits first, smaller ids first among equals. Rows were checked for NaN before.
fn likelier(a: &TokenLogit, b: &TokenLogit) -> Ordering {
    b.logit.partial_cmp(&a.logit).unwrap_or(Ordering::Equal).then(a.token.cmp(&b.token))
}

/// Logits that are skipped together when none of them can be among those wanted.
const SKIP: usize = 64;

/// Replaces `best` by the `k` likeliest tokens of `row` (fewer when fewer are above -infinity), in no order.
pub fn top_k(isa: Isa, row: &[f32], k: usize, best: &mut Vec<TokenLogit>) {
    // SAFETY: the kernel holds slices alone, so it needs no promise.
    unsafe { launch(isa, TopKKernel { row, k, best }) };
}

struct TopKKernel<'a> {
    row: &'a [f32],
    k: usize,
    best: &'a mut Vec<TokenLogit>,
}

impl WithLanes for TopKKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let TopKKernel { row, k, best } = self;
        best.clear();
        let limit = k.saturating_mul(2).max(1024);
        let mut floor = f32::NEG_INFINITY;
        for (at, chunk) in row.chunks(SKIP).enumerate() {
            if chunk_max::<V>(chunk).is_some_and(|max| max <= floor) {
                continue;
            }
            for (within, &logit) in chunk.iter().enumerate() {
                if logit > floor {
                    best.push(TokenLogit { token: (at * SKIP + within) as u32, logit });
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
}

/// Keeps the `k` likeliest.
fn keep(best: &mut Vec<TokenLogit>, k: usize) {
    if best.len() > k {
        best.select_nth_unstable_by(k, likelier);
        best.truncate(k);
    }
}

/// Replaces `all` by the tokens of `row` whose logit is at least `lowest`.
pub fn gather(isa: Isa, row: &[f32], lowest: f64, all: &mut Vec<TokenLogit>) {
    // SAFETY: the kernel holds slices alone, so it needs no promise.
    unsafe { launch(isa, GatherLikelyKernel { row, lowest, all }) };
}

struct GatherLikelyKernel<'a> {
    row: &'a [f32],
    lowest: f64,
    all: &'a mut Vec<TokenLogit>,
}

impl WithLanes for GatherLikelyKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        self.all.clear();
        for (at, chunk) in self.row.chunks(SKIP).enumerate() {
            if chunk_max::<V>(chunk).is_some_and(|max| f64::from(max) < self.lowest) {
                continue;
            }
            let wanted = chunk.iter().enumerate().filter(|(_, logit)| f64::from(**logit) >= self.lowest);
            self.all.extend(wanted.map(|(i, &logit)| TokenLogit { token: (at * SKIP + i) as u32, logit }));
        }
    }
}

/// Sorts the likeliest first.
pub fn sort_by_likelihood(all: &mut [TokenLogit]) {
    all.sort_unstable_by(likelier);
}

/// Sorts by token id.
pub fn sort_by_token(all: &mut [TokenLogit]) {
    all.sort_unstable_by_key(|candidate| candidate.token);
}

/// Keeps the fewest likeliest tokens whose masses reach `target`, in no order; all when they do not reach it.
///
/// Masses are integers, so their sums do not depend on the order in which the selection meets the tokens. Each round
/// halves the range in which the last kept token is looked for: linear work in all.
pub fn nucleus(all: &mut Vec<TokenLogit>, mass: impl Fn(&TokenLogit) -> u64, target: u64) {
    let (mut low, mut high, mut reached) = (0, all.len(), 0);
    while low < high {
        let middle = low + (high - low) / 2;
        all[low..high].select_nth_unstable_by(middle - low, likelier);
        let more = reached + all[low..=middle].iter().map(&mass).sum::<u64>();
        if more >= target {
            high = middle;
        } else {
            (low, reached) = (middle + 1, more);
        }
    }
    all.truncate(low + 1);
}
