//! A right side that stays: it is packed whole, once for all products that read it one after another.

use super::Contract;
use super::magnitudes::{ExponentLimits, Magnitudes};
use super::run::PackedBlocks;
use super::split::{COLUMNS, ContractStrategy, ContractTiling, DEPTH, OutputBlock, PANEL};
use crate::isa::Isa;

/// How a right side was packed by [`Contract::prepack_right`].
#[derive(Clone, Copy, Debug)]
pub struct RhsPacking {
    /// Of all its numbers, where they are pairs.
    pairs: Option<Magnitudes>,
}

/// A packed right side where it lies.
#[derive(Clone, Copy)]
pub(super) struct PrepackedRhs<'a> {
    floats: &'a [f32],
    packed: RhsPacking,
}

/// Floats of room that [`Contract::prepack_right`] needs for so many matrices of k rows and n columns; none where that is no number.
pub fn packed_rhs_floats(matrices: usize, k: usize, n: usize) -> Option<usize> {
    n.checked_next_multiple_of(PANEL)?.checked_mul(k)?.checked_mul(matrices)
}

impl<'a> Contract<'a> {
    /// Packs the whole right side.
    ///
    /// # Panics
    /// When the room is smaller than [`packed_rhs_floats`] says, or the right side has a program.
    ///
    /// # Safety
    /// All elements of b exist, as for [`super::contract`].
    pub unsafe fn prepack_right(&self, isa: Isa, room: &mut [f32]) -> RhsPacking {
        assert!(self.matmul.right.is_none(), "a right side that a program makes is not kept");
        self.check_packed_len(room);
        let room = room.as_mut_ptr();
        let blocks: Vec<(OutputBlock, PackedBlocks)> = self.blocks_of_right(room).collect();
        let pairs_too = |all: Magnitudes, (piece, blocks): &(OutputBlock, PackedBlocks)| {
            // SAFETY: what `Contract::prepack_right` is promised; `Contract::check_packed_len` has checked the room.
            let more = unsafe { self.pairs_of_right(isa, piece, blocks, Magnitudes::are_bf16) };
            more.map(|more| all.and(more))
        };
        let pairs = if self.has_pairs(isa) { blocks.iter().try_fold(Magnitudes::NONE, pairs_too) } else { None };
        if pairs.is_none() {
            // SAFETY: what `Contract::prepack_right` is promised; `StridedInput::within` and `StridedOutput::within`
            // check the operands, `contract` the scratch.
            blocks.iter().for_each(|(piece, blocks)| unsafe { self.pack_right(isa, piece, blocks) });
        }
        RhsPacking { pairs }
    }

    /// The product with a right side that [`Contract::prepack_right`] has packed into `room`, for this one or one of an equal right
    /// side.
    ///
    /// # Panics
    /// When the room is smaller than [`packed_rhs_floats`] says.
    pub fn reading(mut self, packed: RhsPacking, room: &'a [f32]) -> Contract<'a> {
        self.check_packed_len(room);
        self.prepacked = Some(PrepackedRhs { floats: room, packed });
        self.split =
            ContractTiling::new(ContractStrategy::Packed, self.matrices(), self.m, self.matmul.n, self.matmul.workers);
        self
    }

    fn check_packed_len(&self, room: &[f32]) {
        let wanted = packed_rhs_floats(self.matrices(), self.matmul.k, self.matmul.n);
        assert!(wanted.is_some_and(|wanted| room.len() >= wanted), "{} floats of room: {wanted:?} wanted", room.len());
    }

    /// Blocks of b that a cache has room for, where they are packed.
    fn blocks_of_right(&self, room: *mut f32) -> impl Iterator<Item = (OutputBlock, PackedBlocks)> {
        let (matrices, k, n) = (self.matrices(), self.matmul.k, self.matmul.n);
        let of = move |matrix: usize, l: usize, column: usize| {
            let columns = column..n.min(column + COLUMNS);
            let blocks = PackedBlocks::of_right(columns.len(), l, DEPTH.min(k - l));
            let piece = OutputBlock { matrix, rows: 0..0, columns };
            let right = room.wrapping_add(panel_offset(k, n, &piece, &blocks));
            (piece, blocks.beside(right))
        };
        let along = move |matrix| (0..k).step_by(DEPTH).map(move |l| (matrix, l));
        let across = move |(matrix, l)| (0..n).step_by(COLUMNS).map(move |column| of(matrix, l, column));
        (0..matrices).flat_map(along).flat_map(across)
    }

    /// The blocks of a piece with their right side where it is kept: as pairs within limits, or as numbers. Nothing where it
    /// is not kept so.
    pub(super) fn prepacked_right(
        &self,
        piece: &OutputBlock,
        blocks: &PackedBlocks,
        limits: Option<ExponentLimits>,
    ) -> Option<PackedBlocks> {
        let PrepackedRhs { floats: room, packed } = self.prepacked?;
        let is_so = match (limits, packed.pairs) {
            (Some(limits), Some(all)) => limits.hold(all),
            (None, None) => true,
            _ => false,
        };
        let right = room.as_ptr().wrapping_add(panel_offset(self.matmul.k, self.matmul.n, piece, blocks)).cast_mut();
        is_so.then(|| blocks.beside(right))
    }
}

/// Where the first panel of a block is packed.
fn panel_offset(k: usize, n: usize, piece: &OutputBlock, blocks: &PackedBlocks) -> usize {
    let across = n.next_multiple_of(PANEL);
    (piece.matrix * k + blocks.l) * across + piece.columns.start / PANEL * blocks.depth * PANEL
}
