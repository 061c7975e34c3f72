//! One packed row back to f32 (embedding lookup).

#[cfg(target_arch = "aarch64")]
use super::lanes::NeonLanes;
#[cfg(target_arch = "x86_64")]
use super::lanes::{Avx2Lanes, Avx512Lanes};
use super::lanes::{Lanes, PortableLanes};
use crate::isa::Isa;
use crate::pack::{BLOCK, PackedMatrix, Scales, TILE_ROWS, Tile, for_format};

/// Decodes a row. The caller checked that it exists and that `out` is k long.
pub(crate) fn row(isa: Isa, m: &PackedMatrix, matrix: usize, row: usize, out: &mut [f32]) {
    assert!(isa.available(), "this CPU lacks {isa}");
    for_format!(m.format(),
        codes => |T| of::<T>(isa, m, matrix, row, out),
        floats => |T| of::<T>(isa, m, matrix, row, out));
}

fn of<T: Tile>(isa: Isa, m: &PackedMatrix, matrix: usize, row: usize, out: &mut [f32]) {
    let unit = m.tile(matrix, row);
    // SAFETY: the tile's units lie in the matrix, and the caller checked the CPU.
    unsafe {
        match isa {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 | Isa::Avx512Bf16 => avx512::<T>(unit, m.unit_step(), row % TILE_ROWS, out),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => avx2::<T>(unit, m.unit_step(), row % TILE_ROWS, out),
            #[cfg(target_arch = "aarch64")]
            Isa::Neon | Isa::NeonI8mm | Isa::NeonBf16 => {
                decode::<NeonLanes, T>(unit, m.unit_step(), row % TILE_ROWS, out);
            }
            _ => decode::<PortableLanes, T>(unit, m.unit_step(), row % TILE_ROWS, out),
        }
    }
}

/// # Safety
/// As [`decode`]; the CPU has AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn avx512<T: Tile>(unit: *const u8, step: usize, lane: usize, out: &mut [f32]) {
    // SAFETY: as promised by the caller.
    unsafe { decode::<Avx512Lanes, T>(unit, step, lane, out) }
}

/// # Safety
/// As [`decode`]; the CPU has AVX2, FMA and F16C.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn avx2<T: Tile>(unit: *const u8, step: usize, lane: usize, out: &mut [f32]) {
    // SAFETY: as promised by the caller.
    unsafe { decode::<Avx2Lanes, T>(unit, step, lane, out) }
}

/// # Safety
/// Enough units for `out` at `unit` and every `step` bytes; the instruction set of `L`.
#[inline(always)]
unsafe fn decode<L: Lanes, T: Tile>(unit: *const u8, step: usize, lane: usize, out: &mut [f32]) {
    let mut scales = Scales::zero();
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
