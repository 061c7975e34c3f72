//! One packed row back to f32 (embedding lookup).

use super::lanes::{RowLanes, RowLanesJob, launch};
use crate::isa::Isa;
use crate::pack::{BLOCK, PackedMatrix, TILE_ROWS, TileFormat, UnitScales, for_format};
use std::marker::PhantomData;

/// Decodes a row. The caller checked that it exists and that `out` is k long.
pub(crate) fn row(isa: Isa, m: &PackedMatrix, matrix: usize, row: usize, out: &mut [f32]) {
    let (unit, step, lane) = (m.tile(matrix, row), m.unit_step(), row % TILE_ROWS);
    // SAFETY: the tile's units lie in the matrix.
    unsafe {
        for_format!(m.format(),
            codes => |T| launch(isa, UnpackRow::<T> { unit, step, lane, out, format: PhantomData }),
            floats => |T| launch(isa, UnpackRow::<T> { unit, step, lane, out, format: PhantomData }));
    }
}

/// Lane `lane` of the units at `unit` and every `step` bytes, enough of them for `out`.
struct UnpackRow<'a, T> {
    unit: *const u8,
    step: usize,
    lane: usize,
    out: &'a mut [f32],
    format: PhantomData<T>,
}

impl<T: TileFormat> RowLanesJob for UnpackRow<'_, T> {
    #[inline(always)]
    unsafe fn run<L: RowLanes>(self) {
        // SAFETY: as promised by the caller.
        unsafe { decode::<L, T>(self.unit, self.step, self.lane, self.out) }
    }
}

/// # Safety
/// Enough units for `out` at `unit` and every `step` bytes; the instruction set of `L`.
#[inline(always)]
unsafe fn decode<L: RowLanes, T: TileFormat>(unit: *const u8, step: usize, lane: usize, out: &mut [f32]) {
    let mut scales = UnitScales::new();
    let mut rows = [[0f32; TILE_ROWS]; 4];
    for (u, part) in out.chunks_mut(T::UNIT_BLOCKS * BLOCK).enumerate() {
        let unit = unit.wrapping_add(u * step);
        // SAFETY: one unit for each part of `out`.
        unsafe { T::scales::<L>(unit, &mut scales) };
        for (at, four) in part.chunks_mut(4).enumerate() {
            // SAFETY: block and group lie in the unit.
            unsafe {
                let w = T::four::<L>(unit, at / 8, at % 8, &scales);
                for (row, w) in rows.iter_mut().zip(w) {
                    L::store(row.as_mut_ptr(), w);
                }
            }
            for (v, row) in four.iter_mut().zip(&rows) {
                *v = row[lane];
            }
        }
    }
}
