//! Threadblock graphs: a node as a grid of blocks, each of which loops over tiles of the inputs, accumulates, and makes
//! tiles of the outputs from what it has (Wu et al., "Mirage: A Multi-Level Superoptimizer for Tensor Programs", OSDI
//! 2025: imap, omap, fmap).
//!
//! The region's own graph is the loop's body; [`Tiled::block`] follows once a block. Nothing here says how blocks are run:
//! neither who runs one nor where its tiles lie.

mod check;
mod eval;
mod flat;
mod memory;
mod text;
mod unroll;

pub use memory::{block_bytes, in_place};
pub use unroll::{MAX_UNROLLED, NotUnrolled, unrolled};

pub(super) use check::infer;
pub(crate) use eval::evaluate;

use crate::graph::Graph;
use crate::op::Op;
use crate::types::Type;

/// Elements of a tile that a continued reduction takes in at once: a multiple of its partial results, so that each
/// element goes to the partial result that it goes to without tiles.
pub const CONTINUED: usize = crate::op::PARTS;

/// What makes a region tiled, beside the graph of its loop's body.
///
/// - **Body** (the region's graph), once an iteration: its inputs are the tiles of the node's inputs, in their order,
///   then the accumulators in `running` as they stood before the iteration. Its outputs are one value an accumulator, and
///   then what accumulators are rescaled by.
/// - **Block**, once after the loop: its inputs are the accumulators, then the tiles in `reads`. Its outputs are tiles of
///   the node's outputs.
///
/// Both hold general ops alone, on values of fixed shape, or chains of them.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Tiled {
    /// Blocks along each axis of the grid.
    pub grid: [u32; 3],
    /// Iterations of a block's loop, from 1 on.
    pub loops: u32,
    /// How each input of the node is cut.
    pub ins: Vec<TileIn>,
    /// How each output of the node is laid out.
    pub outs: Vec<TileOut>,
    /// What becomes of each of the body's first outputs.
    pub accumulators: Vec<Accumulate>,
    /// Accumulators that the body reads, by number.
    pub running: Vec<u32>,
    /// Inputs of the node whose tiles the block's graph reads, by number. No iteration changes them.
    pub reads: Vec<u32>,
    /// What a block does after its loop.
    pub block: Graph,
}

/// How an input is cut into tiles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TileIn {
    /// The dimension that each axis of the grid cuts (imap); blocks along an axis without one read the same.
    pub grid: [Option<u32>; 3],
    /// The dimension that the loop cuts, inside of the block's part (fmap); without one, each iteration reads the same.
    pub by_loop: Option<u32>,
}

/// How an output is laid out of tiles.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct TileOut {
    /// The dimension along which each axis of the grid lays its tiles (omap).
    pub grid: [Option<u32>; 3],
}

/// What becomes of a value that each iteration makes.
///
/// Floats are held as f32, whatever the value's type is, and rounded to it whenever they are read. The first iteration's
/// value is taken as it is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Accumulate {
    /// The values' sum, iteration by iteration. Its order of additions is the tiling's own.
    Sum,
    /// The largest; NaN where one is NaN.
    Max,
    /// What there is times a factor, which broadcasts, plus the value. Its order of additions is the tiling's own.
    Rescaled {
        /// The output of the body that is the factor.
        by: u32,
    },
    /// The value is made by a contraction or a reduction, which goes on as if there were no tiles: what it is given in
    /// all iterations is joined along the contracted dimension, or along the first reduced one. The order of additions is
    /// the op's, so equal bits come of it.
    Continue,
}

impl Tiled {
    /// Blocks of the grid; `None` where that is no number.
    pub fn blocks(&self) -> Option<u64> {
        self.grid.iter().try_fold(1u64, |n, &g| n.checked_mul(u64::from(g)))
    }

    /// Where block number `at` is in the grid: the first axis is the innermost.
    pub fn block_at(&self, at: usize) -> [usize; 3] {
        let [x, y, _] = self.grid.map(|n| n.max(1) as usize);
        [at % x, at / x % y, at / x / y]
    }

    /// Whether no order of additions is the tiling's own: each element is added up as by ops that see whole inputs, so that
    /// the tiling changes no bit.
    pub fn keeps_order(&self) -> bool {
        let keeps = |how: &Accumulate| matches!(how, Accumulate::Continue | Accumulate::Max);
        self.loops == 1 || (self.running.is_empty() && self.accumulators.iter().all(keeps))
    }

    /// The type of a tile of input `at`, which is of type `ty`: fixed and dense.
    ///
    /// # Errors
    /// Why there is no such tile.
    pub fn tile(&self, at: usize, ty: &Type) -> Result<Type, String> {
        let cut = self.ins.get(at).ok_or_else(|| format!("nothing says how input {at} is cut"))?;
        check::tile(self, at, cut, ty)
    }
}

impl TileIn {
    /// The first element, along each dimension, of the tile of these sizes that a block reads in an iteration.
    pub fn origin(&self, sizes: &[usize], loops: u32, block: [usize; 3], iteration: usize) -> Vec<usize> {
        let along = |(axis, &size): (usize, &usize)| {
            let is = |dim: Option<u32>| dim == Some(axis as u32);
            let part = if is(self.by_loop) { size * loops as usize } else { size };
            let grid: usize = self.grid.iter().zip(block).filter(|(dim, _)| is(**dim)).map(|(_, b)| b * part).sum();
            grid + if is(self.by_loop) { iteration * size } else { 0 }
        };
        sizes.iter().enumerate().map(along).collect()
    }
}

impl TileOut {
    /// The first element, along each dimension, of a block's tile of these sizes.
    pub fn origin(&self, sizes: &[usize], block: [usize; 3]) -> Vec<usize> {
        TileIn { grid: self.grid, by_loop: None }.origin(sizes, 1, block, 0)
    }
}

/// Along which dimension the tiles of an operand of a continued op, of this rank, are joined.
fn joined_along(op: &Op, operand: usize, rank: usize) -> u32 {
    match op {
        Op::Reduce(reduce) => reduce.axes.0.first().copied().unwrap_or(0),
        _ if operand == 0 => (rank as u32).saturating_sub(1),
        _ => (rank as u32).saturating_sub(2),
    }
}
