//! How the products of some matrices and a batch of tokens are cut into pieces that workers take.

use super::variant::{MOST_TOGETHER, MatmulSchedule, MatmulVariant};
use crate::activation::TOKEN_TILE;
use std::ops::Range;

/// A matrix, as work to be cut.
#[derive(Clone, Copy)]
pub struct Panels {
    /// How many.
    pub count: usize,
    /// Bytes of each.
    pub bytes: usize,
}

/// A matrix that is cut.
#[derive(Clone, Copy)]
pub struct MatrixPartition {
    /// Its number.
    pub at: usize,
    panels: Panels,
    /// Panels of a piece.
    step: usize,
    tokens: usize,
    /// Pieces of the same panels, each with some of the tokens.
    slices: usize,
    /// Pieces.
    count: usize,
}

/// Some panels of a matrix, times some of the tokens.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MatmulWorkItem {
    /// The matrix's number.
    pub matrix: usize,
    /// Panels of it.
    pub panels: Range<usize>,
    /// Tokens, in whole tiles.
    pub tokens: Range<usize>,
}

/// Tokens of a piece, in the last slice up to twice as many: as many as meet a panel together.
pub const SLICE: usize = MOST_TOGETHER * TOKEN_TILE;

/// Whether each worker has an even part. With many tokens the list is always drained: pieces are then so large that what
/// follows a product finds its results in the cache.
pub fn is_even(variant: &MatmulVariant, tokens: usize) -> bool {
    tokens <= TOKEN_TILE && variant.share == MatmulSchedule::Static
}

/// Matrices that share an input, cut for `workers`. Many tokens go over as many panels together as stay in the cache, and
/// are cut themselves, so that nobody waits long at the end; even parts are as even as panels allow. Of few tokens a piece
/// has the panels that a pass takes, where that leaves pieces enough.
pub fn cut<I: Iterator<Item = Panels> + Clone>(
    matrices: I,
    variant: &MatmulVariant,
    tokens: usize,
    workers: usize,
) -> impl Iterator<Item = MatrixPartition> + Clone + use<I> {
    let all: usize = matrices.clone().map(|m| m.count).sum();
    let most = if is_even(variant, tokens) { 1 } else { (all / (2 * workers)).max(1) };
    let (bytes, least) = match tokens > TOKEN_TILE {
        true => (variant.group, 1),
        false => (variant.piece, variant.panels),
    };
    matrices.enumerate().map(move |(at, panels)| {
        let step = (bytes / panels.bytes.max(1)).next_multiple_of(least).max(least).min(most);
        let slices = (tokens / SLICE).max(1);
        MatrixPartition { at, panels, step, tokens, slices, count: panels.count.div_ceil(step) * slices }
    })
}

/// Pieces of all.
pub fn total(cut: impl Iterator<Item = MatrixPartition>) -> usize {
    cut.map(|c| c.count).sum()
}

/// The pieces of a worker that has an even part of all bytes.
pub fn even(cut: impl Iterator<Item = MatrixPartition> + Clone, worker: usize, workers: usize) -> Range<usize> {
    let bytes = |c: &MatrixPartition| c.panels.count * c.panels.bytes;
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

/// What `pieces` of all pieces are, in as few parts as there can be.
pub fn parts<I: Iterator<Item = MatrixPartition>>(
    cut: I,
    pieces: Range<usize>,
) -> impl Iterator<Item = MatmulWorkItem> + use<I> {
    let mut before = 0;
    cut.flat_map(move |c| {
        let of = |edge: usize| edge.saturating_sub(before).min(c.count);
        let own = of(pieces.start)..of(pieces.end);
        before += c.count;
        c.parts(own)
    })
}

impl MatrixPartition {
    /// What some of its pieces are: the slices of panels that are begun, whole panels, slices of panels to be ended.
    fn parts(self, pieces: Range<usize>) -> impl Iterator<Item = MatmulWorkItem> {
        let whole = pieces.start.next_multiple_of(self.slices).min(pieces.end);
        let last = (pieces.end / self.slices * self.slices).max(whole);
        let some = [pieces.start..whole, whole..last, last..pieces.end].into_iter().filter(|some| !some.is_empty());
        some.map(move |some| {
            let panel = |group: usize| (group * self.step).min(self.panels.count);
            let token = |slice: usize| if slice == self.slices { self.tokens } else { slice * SLICE };
            let (first, end) = (some.start / self.slices, some.end.div_ceil(self.slices));
            let slices = some.start - first * self.slices..some.end - (end - 1) * self.slices;
            MatmulWorkItem {
                matrix: self.at,
                panels: panel(first)..panel(end),
                tokens: token(slices.start)..token(slices.end),
            }
        })
    }
}

/// The passes that take a tile of `tokens`: powers of two of them, from `from` tokens on as many multiples of `step` as there
/// are at once.
pub fn passes(tokens: usize, from: usize, step: usize) -> impl Iterator<Item = Range<usize>> {
    let mut first = 0;
    std::iter::from_fn(move || {
        let left = tokens.checked_sub(first).filter(|left| *left > 0)?;
        let count = if left < from { 1 << left.ilog2() } else { left / step * step };
        first += count;
        Some(first - count..first)
    })
}
