//! Kernels of 256-bit registers: a tile of 16 rows is two registers of 8 rows. Levels that have them differ in how codes meet
//! activations ([`Avx2DotProduct`]); all sums are exact, so results equal the other kernels' bit for bit.

mod sums;

use super::decoded;
use super::float;
use super::outliers::{self, OutlierBlocks};
use super::pass::{PanelPass, PassFn, Passes, fetch};
use super::unroll::unroll;
use crate::activation::{Meta, TOKEN_TILE};
use crate::pack::{BLOCK, PANEL_TILES, QuantizedTileFormat, TileFormat, UnitScales};
use crate::simd::{Avx2, ByteLanes as _};
use std::arch::x86_64::*;
use std::slice;
use sums::Avx2DotProduct;
pub(crate) use sums::{Vnni, Widened, groups_before_widening, has_vex};

type Avx2Ints = [__m256i; 2];
type Avx2Floats = [__m256; 2];

/// Kernels for f32 activations.
pub(super) fn float_passes<F: TileFormat>() -> Passes {
    let four: PassFn = float_pass::<F, 4>;
    Passes { sizes: [float_pass::<F, 1>, float_pass::<F, 2>, four, four, four], from: 4, step: 4, panels: 1 }
}

decoded::functions!(Avx2, target_feature(enable = "avx2,fma,f16c"));

/// Kernels for int8 activations.
pub(super) fn quantized_passes<F: QuantizedTileFormat, S: Avx2DotProduct>() -> Passes {
    let many: PassFn = quantized_pass::<F, S, 4, TOKEN_TILE>;
    Passes {
        sizes: [quantized_pass::<F, S, 1, 1>, quantized_pass::<F, S, 2, 2>, quantized_pass::<F, S, 4, 4>, many, many],
        from: 4,
        step: 4,
        panels: 1,
    }
}

/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn float_pass<F: TileFormat, const T: usize>(p: &PanelPass) {
    // SAFETY: what `float_pass` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { float::pass::<Avx2, F, T>(p) }
}

/// One pass: a block's codes are unpacked once, then used by `T` tokens at a time, of at most `N`.
///
/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn quantized_pass<F: QuantizedTileFormat, S: Avx2DotProduct, const T: usize, const N: usize>(p: &PanelPass) {
    let mut scales = [const { UnitScales::new() }; PANEL_TILES];
    // SAFETY: units, tiles and blocks stay in the panel, tokens in the tile.
    unsafe {
        let (mut marked, mut acc) =
            (OutlierBlocks::new(slice::from_ref(p)), [[[_mm256_setzero_ps(); 2]; N]; PANEL_TILES]);
        let mut unit = p.w;
        // where a tile is one chunk a constant keeps its codes in registers
        let chunks = if T == N { 1 } else { p.tokens / T };
        for u in 0..p.units {
            let mut w = unit;
            for (tile, scales) in acc.iter_mut().zip(&mut scales) {
                F::scales::<Avx2>(w, scales);
                for b in 0..F::UNIT_BLOCKS {
                    if N <= 4 {
                        fetch::<Avx2, F>(p.ahead, w, b);
                    }
                    let (x, metas) = p.block(u * F::UNIT_BLOCKS + b);
                    let codes = unpack::<F>(w, b);
                    for first in (0..chunks).map(|c| c * T) {
                        let sums = &mut *tile.as_mut_ptr().add(first).cast::<[Avx2Floats; T]>();
                        block::<F, S, T>(&codes, x.add(first * BLOCK), metas.add(first), scales, b, sums);
                    }
                }
                w = w.add(F::UNIT_BYTES);
            }
            if marked.blocks::<F>(u) != 0 {
                add_outliers::<F, N>(&mut marked, u, unit, &scales, &mut acc);
            }
            unit = w;
        }
        for (i, tile) in acc.iter().enumerate() {
            for (t, v) in tile[..p.tokens.min(N)].iter().enumerate() {
                p.put::<Avx2>(i, t, *v);
            }
        }
    }
}

/// [`outliers::add`], out of line: or the loop over all blocks shares its registers with it.
///
/// # Safety
/// As for that.
#[inline(never)]
#[target_feature(enable = "avx2,fma,f16c")]
unsafe fn add_outliers<F: QuantizedTileFormat, const N: usize>(
    marked: &mut OutlierBlocks,
    unit: usize,
    w: *const u8,
    scales: &[UnitScales; PANEL_TILES],
    acc: &mut [[Avx2Floats; N]; PANEL_TILES],
) {
    // SAFETY: what `add_outliers` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { outliers::add::<Avx2, F>(marked, unit, w, scales, acc) }
}

/// The 8 k-groups of a block.
///
/// # Safety
/// A unit at `w`; AVX2.
#[inline(always)]
unsafe fn unpack<F: QuantizedTileFormat>(w: *const u8, b: usize) -> [Avx2Ints; 8] {
    // SAFETY: what `unpack` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        let mut codes = [[_mm256_setzero_si256(); 2]; 8];
        unroll!(I in [0 1 2 3] {
            [codes[2 * I], codes[2 * I + 1]] = F::pair::<Avx2>(w, b, I);
        });
        codes
    }
}

/// Adds a 32-block for `T` tokens.
///
/// # Safety
/// `T` tokens of 32 codes at `x` and their metas at `m`; AVX2, FMA and the instructions of `S`.
#[inline(always)]
unsafe fn block<F: QuantizedTileFormat, S: Avx2DotProduct, const T: usize>(
    w: &[Avx2Ints; 8],
    x: *const u8,
    m: *const Meta,
    s: &UnitScales,
    b: usize,
    acc: &mut [Avx2Floats; T],
) {
    // SAFETY: what `block` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        if F::HALVES == 1 {
            let dot = S::sums::<F, T, 0, 8>(w, x, m);
            let scale = Avx2::load_in_order(s.scale(b).as_ptr()).registers();
            unroll!(I < T {
                let m = &*m.add(I);
                let (d, sum) = (_mm256_set1_ps(m.scale), _mm256_set1_ps(m.scaled_sum));
                unroll!(H in [0 1] {
                    let v = _mm256_cvtepi32_ps(dot[I][H]);
                    acc[I][H] = _mm256_fmadd_ps(v, _mm256_mul_ps(scale[H], d), acc[I][H]);
                    if F::MINS {
                        let min = _mm256_loadu_ps(s.min(b).as_ptr().add(8 * H));
                        acc[I][H] = _mm256_fmadd_ps(min, sum, acc[I][H]);
                    }
                });
            });
            return;
        }
        let mut v = [[_mm256_setzero_ps(); 2]; T];
        let dot = S::sums::<F, T, 0, 4>(w, x, m);
        let scale = Avx2::load_in_order(s.scale(2 * b).as_ptr()).registers();
        unroll!(I < T {
            unroll!(H in [0 1] {
                v[I][H] = _mm256_mul_ps(_mm256_cvtepi32_ps(dot[I][H]), scale[H]);
            });
        });
        let dot = S::sums::<F, T, 4, 8>(w, x, m);
        let scale = Avx2::load_in_order(s.scale(2 * b + 1).as_ptr()).registers();
        unroll!(I < T {
            let m = &*m.add(I);
            let second = m.minus_sum - m.minus_first;
            let d = _mm256_set1_ps(m.scale);
            unroll!(H in [0 1] {
                let mut v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dot[I][H]), scale[H], v[I][H]);
                if F::MINS {
                    let min = |i: usize| _mm256_loadu_ps(s.min(2 * b + i).as_ptr().add(8 * H));
                    v = _mm256_fnmadd_ps(min(0), _mm256_set1_ps(m.minus_first as f32), v);
                    v = _mm256_fnmadd_ps(min(1), _mm256_set1_ps(second as f32), v);
                }
                acc[I][H] = _mm256_fmadd_ps(v, d, acc[I][H]);
            });
        });
    }
}
