//! AVX-512 kernels: a tile of 16 rows is one register.

mod bf16;
mod bf16_halves;
mod bf16_matrix;
mod few;
mod many;
mod matrix;
mod winograd;

use super::decoded;
use super::float;
use super::outliers::{self, OutlierBlocks};
use super::pass::{PanelPass, PassFn, Passes, PassesFn};
use super::variant::{MOST_PANELS, MOST_TOGETHER, MatmulVariant};
use crate::pack::{PANEL_TILES, QuantizedTileFormat, TileFormat, UnitScales};
use crate::simd::Avx512;
use std::arch::x86_64::*;

/// Kernels for f32 activations.
pub(super) fn float_passes<F: TileFormat>() -> Passes {
    let sizes: [PassFn; 5] =
        [float_pass::<F, 1>, float_pass::<F, 2>, float_pass::<F, 4>, float_pass::<F, 8>, float_pass::<F, 8>];
    Passes { sizes, from: 8, step: 8, panels: 1 }
}

decoded::functions!(Avx512, target_feature(enable = "avx512f,avx512bw,avx512vl"));

/// Kernels for int8 activations.
pub(super) fn quantized_passes<F: QuantizedTileFormat>(variant: &MatmulVariant) -> Passes {
    let many: PassFn = many::pass::<F>;
    // Tiles by twos are not one stream of memory, which 8 bits feel most.
    let few = if F::BITS > 6 { variant.few8 } else { variant.few };
    let eight: PassFn = if few < 8 { many } else { few::pass::<F, 8, MOST_PANELS> };
    let sizes: [PassFn; 5] =
        [few::pass::<F, 1, MOST_PANELS>, few::pass::<F, 2, MOST_PANELS>, few::pass::<F, 4, MOST_PANELS>, eight, many];
    Passes { sizes, from: few + 1, step: 1, panels: variant.panels }
}

/// Several full tiles with int8 activations.
pub(super) fn pairs<F: QuantizedTileFormat>() -> PassesFn {
    many::together::<F, MOST_TOGETHER>
}

/// Full tiles with int8 activations, by matrix registers.
pub(super) fn matrix<F: QuantizedTileFormat>() -> PassesFn {
    matrix::some::<F, MOST_TOGETHER>
}

/// Full tiles with int8 activations, by half as many multiplications; `None` where codes are too large for it.
pub(super) fn winograd<F: QuantizedTileFormat>() -> Option<PassesFn> {
    winograd::kernel::<F>()
}

/// Full tiles with int8 activations, one tile of rows at a time.
pub(super) fn single<F: QuantizedTileFormat>() -> PassesFn {
    few::together::<F>
}

/// Kernels for BF16 weights and bf16 activations.
pub(super) const BF16_PASSES: Passes = Passes {
    sizes: [bf16::few::<1>, bf16::few::<2>, bf16::few::<4>, bf16::few::<8>, bf16::full],
    from: 8,
    step: 8,
    panels: 1,
};

/// The same by matrix registers.
pub(super) fn bf16_matrix_passes(variant: &MatmulVariant) -> Passes {
    let any: PassFn = bf16_matrix::any;
    Passes { sizes: [bf16_halves::one, any, any, any, any], from: 2, step: 1, panels: variant.panels }
}

/// Several full tiles with bf16 activations, by matrix registers.
pub(super) const BF16_MATRIX_TOGETHER: PassesFn = bf16_matrix::together;

/// Several full tiles with bf16 activations.
pub(super) const BF16_TOGETHER: PassesFn = bf16::together::<MOST_TOGETHER>;

/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn float_pass<F: TileFormat, const T: usize>(p: &PanelPass) {
    // SAFETY: what `float_pass` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { float::pass::<Avx512, F, T>(p) }
}

/// [`outliers::add`], out of line: or the loop over all blocks shares its registers with it.
///
/// # Safety
/// As for that.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn add_outliers<F: QuantizedTileFormat, const N: usize>(
    marked: &mut OutlierBlocks,
    unit: usize,
    w: *const u8,
    scales: &[UnitScales; PANEL_TILES],
    sums: &mut [[[__m512; N]; PANEL_TILES]],
) {
    // SAFETY: what `add_outliers` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { outliers::add::<Avx512, F>(marked, unit, w, scales, sums) }
}

/// Writes the results.
///
/// # Safety
/// As for [`PassFn`], with each of `passes`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn finish<const N: usize>(passes: &[PanelPass], sums: &[[[__m512; N]; PANEL_TILES]]) {
    for (p, sums) in passes.iter().zip(sums) {
        for (i, tile) in sums.iter().enumerate() {
            for (t, v) in tile[..p.tokens.min(N)].iter().enumerate() {
                // SAFETY: what `finish` is promised; `linear` has checked panels and tokens, `Dispatch::new` the
                // level.
                unsafe { p.put::<Avx512>(i, t, *v) }
            }
        }
    }
}
