//! The ends of a product: sums that go on are read, and sums are stored, or a program's values of them.

use super::Contract;
use super::run::Cached;
use super::split::OutputBlock;
use crate::general::StridedOutput;
use crate::general::convert::{read, write};
use crate::isa::Isa;
use crate::simd::{Lanes, WithLanes, launch};

/// Rows of sums on their way to memory. Needs the block, whose rows go on to a multiple of sixteen, and its elements of the output.
struct StoreSums {
    block: Cached,
    to: StridedOutput,
}

impl WithLanes for StoreSums {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let StoreSums { block, to } = self;
        let [down, across] = [0, 1].map(|axis| to.strides.as_slice()[axis]);
        for r in 0..block.rows {
            let row = to.base.wrapping_byte_offset(r as isize * down as isize * to.elem.bytes() as isize);
            // SAFETY: `Contract::finish` gives sums whose rows go on to a multiple of sixteen.
            unsafe { write::<V>(to.elem, block.x.add(r * block.pitch), row, across, block.columns) };
        }
    }
}

/// Rows of sums on their way back. Needs the elements, and room for a block whose rows go on to a multiple of sixteen.
struct LoadSums {
    block: Cached,
    from: StridedOutput,
}

impl WithLanes for LoadSums {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let LoadSums { block, from } = self;
        let [down, across] = [0, 1].map(|axis| from.strides.as_slice()[axis]);
        for r in 0..block.rows {
            let row = from.base.wrapping_byte_offset(r as isize * down as isize * from.elem.bytes() as isize);
            // SAFETY: `Contract::begin` gives room for sums whose rows go on to a multiple of sixteen.
            unsafe { read::<V>(from.elem, row, across, block.columns, block.x.add(r * block.pitch).cast_mut()) };
        }
    }
}

impl Contract<'_> {
    /// Reads the sums that a piece goes on from.
    ///
    /// # Safety
    /// As for [`Contract::finish`].
    pub(super) unsafe fn begin(&self, isa: Isa, piece: &OutputBlock, sums: &mut [f32], pitch: usize) {
        if self.matmul.goes_on {
            let (corner, rows, columns) = (self.corner(piece), piece.rows.len(), piece.columns.len());
            let block = Cached { corner, rows, columns, x: sums.as_mut_ptr(), pitch };
            // SAFETY: the sums that `Contract::begin` is promised, and the piece's elements of the output.
            unsafe { launch(isa, LoadSums { block, from: self.output(corner) }) };
        }
    }

    /// Stores the sums of a piece.
    ///
    /// # Safety
    /// The piece's elements of the result exist and are the caller's alone; `sums` holds its rows, `pitch` apart.
    pub(super) unsafe fn finish(&self, isa: Isa, piece: &OutputBlock, sums: &mut [f32], pitch: usize) {
        let (corner, rows, columns) = (self.corner(piece), piece.rows.len(), piece.columns.len());
        let block = Cached { corner, rows, columns, x: sums.as_ptr(), pitch };
        let to = self.output(corner);
        match self.matmul.after {
            // SAFETY: what `Contract::finish` is promised; `StridedInput::within` and `StridedOutput::within` check
            // the operands, `contract` the scratch.
            Some(fused) => unsafe { self.through(isa, fused, block, to) },
            // SAFETY: the sums that `Contract::finish` is promised, and the piece's elements of the output.
            None => unsafe { launch(isa, StoreSums { block, to }) },
        }
    }
}
