//! How a product is cut into pieces: disjoint blocks of the output, each worked on by one worker. How it is cut changes
//! no bit of the result.

use crate::simd::LANES;
use std::ops::Range;

/// Elements along k that are packed at once: so many that the way of sums to the registers and back is short beside their
/// products, and so few that all that is packed of a piece fits the second-level cache.
pub(super) const DEPTH: usize = 256;
/// From row to row of a packed block of a. Not a power of two, so that rows do not meet in few cache sets.
pub(super) const LINE: usize = DEPTH + LANES;
/// Columns of a panel of b: two vectors.
pub(super) const PANEL: usize = 2 * LANES;
/// Most rows for which b is streamed as it lies: beyond, packing it costs less than its products.
pub(super) const FEW: usize = 32;
/// The same where b is bf16 numbers held as f32, which only packing makes pairs of.
pub(super) const FEW_WIDE: usize = 16;
/// Most rows of a piece: a multiple of every level's register tile.
const ROWS: usize = 192;
/// Rows of a piece are a multiple: one or two register tiles of every level.
const TILE: usize = 12;
/// Rows of the register tile with which `rows` of them begin, at a level that has room for twelve: a tile of few rows at the
/// end would wait for its sums.
pub(super) fn tile_rows(rows: usize) -> usize {
    match rows {
        20.. | 12 => 12,
        8.. => 8,
        6.. => 6,
        4.. => 4,
        2.. => 2,
        _ => 1,
    }
}

/// Most columns of a piece: with [`ROWS`] and [`DEPTH`] all that is packed fits the second-level cache.
pub(super) const COLUMNS: usize = 256;
/// Most sums of a piece of few rows: as much as a first-level cache holds.
const SUMS: usize = 8192;
/// Least columns of a piece of few rows: runs of a kilobyte and more are read at memory's speed.
pub(super) const RUN: usize = 256;
/// Bytes of rows of b that are multiplied while as many that come next are fetched. Rows are often a power of two apart and
/// meet in few sets of the second-level cache: more would not stay in it.
const STREAMED: usize = 32 << 10;
/// Least and most rows of b that meet sums in registers.
const STREAMED_ROWS: (usize, usize) = (8, 64);

/// How many rows of b, of so many bytes, are multiplied while others are fetched.
pub(super) fn streamed_rows(bytes: usize) -> usize {
    (STREAMED / bytes.max(1) / 2 * 2).clamp(STREAMED_ROWS.0, STREAMED_ROWS.1)
}

/// Pieces that each of several workers finds at least, where the output is large enough.
const PIECES_PER_WORKER: usize = 2;

/// How the pieces of a product are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ContractStrategy {
    /// Few rows: b is read in address order, as it lies.
    Stream,
    /// Blocks of a and b are packed.
    Packed,
}

/// The pieces of a product.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ContractTiling {
    pub(super) strategy: ContractStrategy,
    m: usize,
    n: usize,
    /// Rows and columns of a piece; the last ones may be smaller.
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) pieces: usize,
}

/// A block of the output.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct OutputBlock {
    pub(super) matrix: usize,
    pub(super) rows: Range<usize>,
    pub(super) columns: Range<usize>,
}

impl ContractTiling {
    /// Of `matrices` outputs of `[m, n]`.
    pub(super) fn new(way: ContractStrategy, matrices: usize, m: usize, n: usize, workers: usize) -> ContractTiling {
        if matrices * m * n == 0 {
            return ContractTiling { strategy: way, m, n, rows: 1, columns: 1, pieces: 0 };
        }
        let wanted = if workers > 1 { PIECES_PER_WORKER * workers } else { 1 };
        let (rows, columns) = match way {
            ContractStrategy::Stream => (m, stream_columns(matrices, m, n, wanted)),
            ContractStrategy::Packed => packed_block(matrices, m, n, wanted),
        };
        ContractTiling { strategy: way, m, n, rows, columns, pieces: matrices * m.div_ceil(rows) * n.div_ceil(columns) }
    }

    /// Floats of scratch that a piece needs.
    pub(super) fn floats(&self) -> usize {
        let columns = self.columns.next_multiple_of(PANEL);
        let right = DEPTH * if self.strategy == ContractStrategy::Packed { columns } else { PANEL };
        self.rows * LINE + right + self.rows * columns
    }

    /// Piece `i` of [`ContractTiling::pieces`]: neighbours have their columns of b in common.
    pub(super) fn piece(&self, i: usize) -> OutputBlock {
        let (down, across) = (self.m.div_ceil(self.rows), self.n.div_ceil(self.columns));
        let (row, column) = (i % down * self.rows, i / down % across * self.columns);
        OutputBlock {
            matrix: i / (down * across),
            rows: row..self.m.min(row + self.rows),
            columns: column..self.n.min(column + self.columns),
        }
    }
}

/// Floats of scratch that a piece of any product of `m` rows and `n` columns needs, or of a smaller one.
pub(super) fn scratch_floats(m: usize, n: usize) -> usize {
    let rows = ROWS.min(m.next_multiple_of(TILE));
    let columns = COLUMNS.min(n.next_multiple_of(PANEL));
    (rows * LINE + DEPTH * columns + rows * columns).max(FEW * LINE + DEPTH * PANEL + SUMS)
}

/// As wide as the first-level cache holds sums for, and as gives every worker its share.
fn stream_columns(matrices: usize, m: usize, n: usize, wanted: usize) -> usize {
    let most = (SUMS / m / PANEL * PANEL).max(RUN);
    let share = (matrices * n / wanted).next_multiple_of(PANEL);
    most.min(share.max(RUN)).min(n.next_multiple_of(PANEL))
}

/// Blocks of equal size, halved until every worker has its share.
fn packed_block(matrices: usize, m: usize, n: usize, wanted: usize) -> (usize, usize) {
    let even = |size: usize, most: usize, unit: usize| size.div_ceil(size.div_ceil(most)).next_multiple_of(unit);
    let (mut most_rows, mut most_columns) = (ROWS, COLUMNS);
    loop {
        let (rows, columns) = (even(m, most_rows, TILE), even(n, most_columns, PANEL));
        let least = rows <= 2 * TILE && columns <= 2 * PANEL;
        if least || matrices * m.div_ceil(rows) * n.div_ceil(columns) >= wanted {
            return (rows, columns);
        }
        if rows > columns / 2 {
            most_rows = (rows / 2).next_multiple_of(TILE);
        } else {
            most_columns = (columns / 2).next_multiple_of(PANEL);
        }
    }
}
