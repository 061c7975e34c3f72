//! How the panels of some matrices are cut into pieces that workers take.

use super::variant::{Share, Variant};
use crate::activation::TOKEN_TILE;
use std::ops::Range;

/// A matrix, as work to be cut.
#[derive(Clone, Copy)]
pub(crate) struct Panels {
    /// How many.
    pub(crate) count: usize,
    /// Bytes of each.
    pub(crate) bytes: usize,
}

/// A matrix that is cut.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    /// Its number.
    pub(crate) at: usize,
    panels: Panels,
    /// Panels of a piece.
    step: usize,
    /// Pieces.
    count: usize,
}

/// Whether each worker has an even part. With many tokens the list is always drained: pieces are then so large that what
/// follows a product finds its results in the cache.
pub(crate) fn is_even(variant: &Variant, tokens: usize) -> bool {
    tokens <= TOKEN_TILE && variant.share == Share::Static
}

/// Matrices that share an input, cut for `workers`. Many tokens go over as many panels together as stay in the cache; even
/// parts are as even as panels allow.
pub(crate) fn cut<I: Iterator<Item = Panels> + Clone>(
    matrices: I,
    variant: &Variant,
    tokens: usize,
    workers: usize,
) -> impl Iterator<Item = Cut> + Clone + use<I> {
    let all: usize = matrices.clone().map(|m| m.count).sum();
    let most = if is_even(variant, tokens) { 1 } else { (all / (2 * workers)).max(1) };
    let bytes = if tokens > TOKEN_TILE { variant.group } else { variant.piece };
    matrices.enumerate().map(move |(at, panels)| {
        let step = (bytes / panels.bytes.max(1)).clamp(1, most);
        Cut { at, panels, step, count: panels.count.div_ceil(step) }
    })
}

/// Pieces of all.
pub(crate) fn total(cut: impl Iterator<Item = Cut>) -> usize {
    cut.map(|c| c.count).sum()
}

/// The pieces of a worker that has an even part of all bytes.
pub(crate) fn even(cut: impl Iterator<Item = Cut> + Clone, worker: usize, workers: usize) -> Range<usize> {
    let bytes = |c: &Cut| c.panels.count * c.panels.bytes;
    let all: usize = cut.clone().map(|c| bytes(&c)).sum();
    let edge = |worker: usize| {
        let (mut left, mut before) = (all / workers * worker + all % workers * worker / workers, 0);
        for c in cut.clone() {
            let piece = (bytes(&c) / c.count.max(1)).max(1);
            if left < bytes(&c) {
                return before + ((left + piece / 2) / piece).min(c.count);
            }
            (left, before) = (left - bytes(&c), before + c.count);
        }
        before
    };
    edge(worker)..edge(worker + 1)
}

/// The panels of each matrix that `pieces` of all pieces are.
pub(crate) fn panels<I: Iterator<Item = Cut>>(
    cut: I,
    pieces: Range<usize>,
) -> impl Iterator<Item = (usize, Range<usize>)> + use<I> {
    let mut before = 0;
    cut.filter_map(move |c| {
        let of = |edge: usize| (edge.saturating_sub(before).min(c.count) * c.step).min(c.panels.count);
        let panels = of(pieces.start)..of(pieces.end);
        before += c.count;
        (!panels.is_empty()).then_some((c.at, panels))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;

    /// Each panel is in one piece, and even parts join without a gap, whatever the sizes.
    #[test]
    fn every_panel_is_in_one_piece_and_one_even_part() {
        let sizes = [(1, 100_000), (3, 7), (17, 50_000), (0, 9), (40, 64), (2374, 13_056)];
        let matrices = sizes.map(|(count, bytes)| Panels { count, bytes });
        for (share, tokens) in [(Share::Drained, 1), (Share::Static, 1), (Share::Static, 33)] {
            let variant = Variant { share, ..Variant::of_level(Isa::Scalar) };
            for (workers, some) in (1..=9).flat_map(|w| (0..=matrices.len()).map(move |n| (w, n))) {
                let cut = cut(matrices[..some].iter().copied(), &variant, tokens, workers);
                let all = total(cut.clone());
                let mut seen: Vec<Vec<bool>> = matrices[..some].iter().map(|m| vec![false; m.count]).collect();
                let mut next = 0;
                for worker in 0..workers {
                    let pieces = even(cut.clone(), worker, workers);
                    assert_eq!(pieces.start, next, "worker {worker} of {workers}");
                    next = pieces.end;
                    for (at, panels) in pieces.flat_map(|piece| panels(cut.clone(), piece..piece + 1)) {
                        panels.for_each(|p| assert!(!std::mem::replace(&mut seen[at][p], true)));
                    }
                }
                assert_eq!(next, all);
                assert!(seen.iter().flatten().all(|s| *s), "{share:?} {tokens} {workers} {some}");
            }
        }
    }
}
