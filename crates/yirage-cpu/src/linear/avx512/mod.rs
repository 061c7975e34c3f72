//! AVX-512 kernels: a tile of 16 rows is one register.

mod bf16;
mod few;
mod many;

use super::decoded;
use super::float;
use super::lanes::Avx512Lanes;
use super::outliers;
use super::pass::{Pass, PassFn, PassesFn, TOGETHER};
use super::unroll::unroll;
use crate::activation::TOKEN_TILE;
use crate::pack::{Codes, PANEL_TILES, Tile};
use std::arch::x86_64::*;

/// Kernels for f32 activations.
pub(super) fn float_passes<F: Tile>() -> [PassFn; 5] {
    [float_pass::<F, 1>, float_pass::<F, 2>, float_pass::<F, 4>, float_pass::<F, 8>, float_pass::<F, 8>]
}

decoded::functions!(Avx512Lanes, target_feature(enable = "avx512f,avx512bw,avx512vl"));

/// Kernels for int8 activations.
pub(super) fn codes_passes<F: Codes>() -> [PassFn; 5] {
    [few::pass::<F, 1>, few::pass::<F, 2>, few::pass::<F, 4>, many::pass::<F, 8>, many::pass::<F, TOKEN_TILE>]
}

/// Several full tiles with int8 activations.
pub(super) fn together<F: Codes>() -> PassesFn {
    many::together::<F, TOKEN_TILE, TOGETHER>
}

/// Kernels for BF16 weights and bf16 activations.
pub(super) const BF16_PASSES: [PassFn; 5] =
    [bf16::pass::<1>, bf16::pass::<2>, bf16::pass::<4>, bf16::pass::<8>, bf16::pass::<TOKEN_TILE>];

/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn float_pass<F: Tile, const T: usize>(p: &Pass) {
    // SAFETY: as promised by the caller.
    unsafe { float::pass::<Avx512Lanes, F, T>(p) }
}

/// [`outliers::add`], out of line: or the loop over all blocks shares its registers with it.
///
/// # Safety
/// As for that.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn add_outliers<F: Codes, const N: usize>(passes: &[Pass], sums: &mut [[[__m512; N]; PANEL_TILES]]) {
    // SAFETY: as promised by the caller.
    unsafe { outliers::add::<Avx512Lanes, F>(passes, sums) }
}

/// Adds the outliers and writes the results.
///
/// # Safety
/// As for [`PassFn`], with each of `passes`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn finish<F: Codes, const N: usize>(passes: &[Pass], sums: &mut [[[__m512; N]; PANEL_TILES]]) {
    // SAFETY: as promised by the caller.
    unsafe {
        add_outliers::<F, N>(passes, sums);
        for (p, sums) in passes.iter().zip(sums) {
            for (i, tile) in sums.iter().enumerate() {
                unroll!(I < N { p.put::<Avx512Lanes>(i, I, tile[I]); });
            }
        }
    }
}
