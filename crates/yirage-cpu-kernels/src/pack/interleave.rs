//! Up to sixteen rows of a file become a tile.

use super::tile::{BLOCK, SourceBlocks, TILE_ROWS, TileFormat};
use super::{PackedMatrix, for_format};
use crate::isa::Isa;
use crate::simd::{Lanes, WithLanes, launch};
use std::array::from_fn;
use std::marker::PhantomData;

/// Packs the tile that begins with `row`; `bytes` are its rows as they lie in the file.
///
/// # Safety
/// `row` is a multiple of 16, and `bytes` are at most 16 whole rows of the matrix; nobody else uses the tile.
pub(super) unsafe fn tile(isa: Isa, m: &PackedMatrix, matrix: usize, row: usize, bytes: &[u8]) {
    let (unit, step) = (m.tile(matrix, row).cast_mut(), m.unit_step());
    // SAFETY: the units of the tile lie in the matrix at this step, and are not shared.
    unsafe {
        for_format!(m.format,
            codes => |T| launch(isa, Interleave::<T> { unit, step, bytes, matrix: m, format: PhantomData }),
            floats => |T| launch(isa, Interleave::<T> { unit, step, bytes, matrix: m, format: PhantomData }));
    }
}

/// Bytes of the largest block that is handed to [`TileFormat::put`].
const BLOCK_BYTES: usize = 256;
/// What stands in for rows beyond the matrix.
static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// The units of a tile, at `unit` and every `step` bytes, and the rows that go into them.
struct Interleave<'a, T> {
    unit: *mut u8,
    step: usize,
    bytes: &'a [u8],
    matrix: &'a PackedMatrix,
    format: PhantomData<T>,
}

impl<T: TileFormat> WithLanes for Interleave<'_, T> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        let info = self.matrix.format.info();
        let (row_bytes, block) = (info.row_bytes(self.matrix.k), info.row_bytes(T::PUT));
        let (whole, part) = (self.matrix.k / T::PUT, self.matrix.k % T::PUT);
        let per_unit = T::UNIT_BLOCKS * BLOCK / T::PUT;
        let row = |r: usize| self.bytes.get(r * row_bytes..(r + 1) * row_bytes);
        let mut at = from_fn(|r| row(r).map_or(ZEROS.as_ptr(), <[u8]>::as_ptr));
        let forward: [usize; TILE_ROWS] = from_fn(|r| row(r).map_or(0, |_| block));
        for i in 0..whole {
            let unit = self.unit.wrapping_add(i / per_unit * self.step);
            // SAFETY: every pointer is at a whole block, of a row or of zeros.
            unsafe { T::put::<L>(unit, i % per_unit, &SourceBlocks(at)) };
            at = from_fn(|r| at[r].wrapping_add(forward[r]));
        }
        if part > 0 {
            let mut last = [[0u8; BLOCK_BYTES]; TILE_ROWS];
            for (r, last) in last.iter_mut().enumerate() {
                let rest = row(r).map_or(&[][..], |row| &row[whole * block..]);
                last[..rest.len()].copy_from_slice(rest);
            }
            let unit = self.unit.wrapping_add(whole / per_unit * self.step);
            // SAFETY: every pointer is at a whole block on the stack, and the unit is that of the last blocks.
            unsafe { T::put::<L>(unit, whole % per_unit, &SourceBlocks(last.each_ref().map(|b| b.as_ptr()))) };
        }
    }
}
