//! One packed row back to f32 (embedding lookup).

use super::{BLOCK, PackedMatrix, TILE_ROWS, TileFormat, UnitScales, for_format};
use crate::isa::Isa;
use crate::simd::{Lanes, WithLanes, launch};
use std::marker::PhantomData;

/// Decodes a row.
///
/// # Panics
/// When the row does not exist, `out` is not k long, or this CPU lacks `isa`.
pub(super) fn row(isa: Isa, m: &PackedMatrix, matrix: usize, row: usize, out: &mut [f32]) {
    assert!(matrix < m.count() && row < m.rows(), "row {row} of matrix {matrix} does not exist");
    assert_eq!(out.len(), m.k(), "a row has {} weights", m.k());
    let (unit, step, lane) = (m.tile(matrix, row), m.unit_step(), row % TILE_ROWS);
    // SAFETY: `UnpackRow` wants a unit for each part of `out`: the row is the matrix's and `out` as long as one, as has just been
    // checked.
    unsafe {
        for_format!(m.format(),
            codes => |T| launch(isa, UnpackRow::<T> { unit, step, lane, out, format: PhantomData }),
            floats => |T| launch(isa, UnpackRow::<T> { unit, step, lane, out, format: PhantomData }));
    }
}

/// Lane `lane` of the units at `unit` and every `step` bytes. Needs enough of them for `out`, which [`row`] checks.
struct UnpackRow<'a, T> {
    unit: *const u8,
    step: usize,
    lane: usize,
    out: &'a mut [f32],
    format: PhantomData<T>,
}

impl<T: TileFormat> WithLanes for UnpackRow<'_, T> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<L: Lanes>(self) {
        // SAFETY: `decode` wants the units that the type needs, which `row` has checked, and the instructions of `WithLanes::run`.
        unsafe { decode::<L, T>(self.unit, self.step, self.lane, self.out) }
    }
}

/// # Safety
/// Enough units for `out` at `unit` and every `step` bytes; the instruction set of `L`.
#[inline(always)]
unsafe fn decode<L: Lanes, T: TileFormat>(unit: *const u8, step: usize, lane: usize, out: &mut [f32]) {
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
                    w.store(row.as_mut_ptr());
                }
            }
            for (v, row) in four.iter_mut().zip(&rows) {
                *v = row[lane];
            }
        }
    }
}
