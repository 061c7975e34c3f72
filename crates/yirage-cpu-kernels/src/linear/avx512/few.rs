//! Up to 4 tokens: the sums of a tile stay in registers over a unit, tile after tile in one memory stream. `vpdpbusd`
//! takes 4 k of 16 rows at once, the activations being its broadcast memory operand, so there are no horizontal sums
//! and no broadcast loads.
//!
//! The chains of `vpdpbusd` are assembly: LLVM reorders intrinsics until the accumulators spill.

use super::add_outliers;
use crate::activation::{Meta, TOKEN_TILE};
use crate::linear::outliers::OutlierBlocks;
use crate::linear::pass::{PanelPass, fetch};
use crate::linear::unroll::unroll;
use crate::pack::{BLOCK, PANEL_TILES, QuantizedTileFormat, UnitScales};
use crate::simd::Avx512;
use std::arch::asm;
use std::arch::x86_64::*;
use std::slice;

/// Eight groups of tokens `$o / 32` and the next.
macro_rules! two_tokens {
    ($i:ident, $j:ident, $w:ident, $x:expr, $o:expr) => {
        asm!(
            "vpdpbusd {i}, {w0}, dword ptr [{x} + {o}]{{1to16}}",
            "vpdpbusd {j}, {w0}, dword ptr [{x} + {o} + 32]{{1to16}}",
            "vpdpbusd {i}, {w1}, dword ptr [{x} + {o} + 4]{{1to16}}",
            "vpdpbusd {j}, {w1}, dword ptr [{x} + {o} + 36]{{1to16}}",
            "vpdpbusd {i}, {w2}, dword ptr [{x} + {o} + 8]{{1to16}}",
            "vpdpbusd {j}, {w2}, dword ptr [{x} + {o} + 40]{{1to16}}",
            "vpdpbusd {i}, {w3}, dword ptr [{x} + {o} + 12]{{1to16}}",
            "vpdpbusd {j}, {w3}, dword ptr [{x} + {o} + 44]{{1to16}}",
            "vpdpbusd {i}, {w4}, dword ptr [{x} + {o} + 16]{{1to16}}",
            "vpdpbusd {j}, {w4}, dword ptr [{x} + {o} + 48]{{1to16}}",
            "vpdpbusd {i}, {w5}, dword ptr [{x} + {o} + 20]{{1to16}}",
            "vpdpbusd {j}, {w5}, dword ptr [{x} + {o} + 52]{{1to16}}",
            "vpdpbusd {i}, {w6}, dword ptr [{x} + {o} + 24]{{1to16}}",
            "vpdpbusd {j}, {w6}, dword ptr [{x} + {o} + 56]{{1to16}}",
            "vpdpbusd {i}, {w7}, dword ptr [{x} + {o} + 28]{{1to16}}",
            "vpdpbusd {j}, {w7}, dword ptr [{x} + {o} + 60]{{1to16}}",
            i = inout(zmm_reg) $i, j = inout(zmm_reg) $j, x = in(reg) $x, o = const $o,
            w0 = in(zmm_reg) $w[0], w1 = in(zmm_reg) $w[1], w2 = in(zmm_reg) $w[2], w3 = in(zmm_reg) $w[3],
            w4 = in(zmm_reg) $w[4], w5 = in(zmm_reg) $w[5], w6 = in(zmm_reg) $w[6], w7 = in(zmm_reg) $w[7],
            options(nostack, readonly, preserves_flags));
    };
}

/// The first and the last four groups of token `$o / 32`, apart.
macro_rules! two_halves {
    ($i:ident, $j:ident, $w:ident, $x:expr, $o:expr) => {
        asm!(
            "vpdpbusd {i}, {w0}, dword ptr [{x} + {o}]{{1to16}}",
            "vpdpbusd {j}, {w4}, dword ptr [{x} + {o} + 16]{{1to16}}",
            "vpdpbusd {i}, {w1}, dword ptr [{x} + {o} + 4]{{1to16}}",
            "vpdpbusd {j}, {w5}, dword ptr [{x} + {o} + 20]{{1to16}}",
            "vpdpbusd {i}, {w2}, dword ptr [{x} + {o} + 8]{{1to16}}",
            "vpdpbusd {j}, {w6}, dword ptr [{x} + {o} + 24]{{1to16}}",
            "vpdpbusd {i}, {w3}, dword ptr [{x} + {o} + 12]{{1to16}}",
            "vpdpbusd {j}, {w7}, dword ptr [{x} + {o} + 28]{{1to16}}",
            i = inout(zmm_reg) $i, j = inout(zmm_reg) $j, x = in(reg) $x, o = const $o,
            w0 = in(zmm_reg) $w[0], w1 = in(zmm_reg) $w[1], w2 = in(zmm_reg) $w[2], w3 = in(zmm_reg) $w[3],
            w4 = in(zmm_reg) $w[4], w5 = in(zmm_reg) $w[5], w6 = in(zmm_reg) $w[6], w7 = in(zmm_reg) $w[7],
            options(nostack, readonly, preserves_flags));
    };
}

/// Start of an integer sum: the offset's share, so that it costs nothing later. One instruction with a broadcast
/// memory operand; LLVM would shift in a general register and move that across.
#[target_feature(enable = "avx512f")]
#[inline]
fn start<F: QuantizedTileFormat>(minus_sum: &i32) -> __m512i {
    if F::OFFSET == 0 {
        return _mm512_setzero_si512();
    }
    let out: __m512i;
    // SAFETY: reads the number it is given.
    unsafe {
        asm!("vpslld {out}, dword ptr [{sum}]{{1to16}}, {shift}", out = lateout(zmm_reg) out,
            sum = in(reg) minus_sum, shift = const F::OFFSET_SHIFT, options(nostack, pure, readonly, preserves_flags));
    }
    out
}

/// A number in every row. LLVM would read neighbours together and then move each across the lanes.
#[target_feature(enable = "avx512f")]
#[inline]
fn broadcast(x: &f32) -> __m512 {
    let out: __m512;
    // SAFETY: reads the number it is given.
    unsafe {
        asm!("vbroadcastss {out}, dword ptr [{x}]", out = lateout(zmm_reg) out, x = in(reg) x,
            options(nostack, pure, readonly, preserves_flags));
    }
    out
}

/// `acc += dot * scale * activation scale (+ min * activation sum)` of a block with one scale.
#[target_feature(enable = "avx512f")]
#[inline]
fn add<F: QuantizedTileFormat>(acc: __m512, dot: __m512i, scale: __m512, min: __m512, m: &Meta) -> __m512 {
    let scale = _mm512_mul_ps(scale, broadcast(&m.scale));
    let acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, acc);
    if F::MINS { _mm512_fmadd_ps(min, broadcast(&m.scaled_sum), acc) } else { acc }
}

/// The same of a block with two scales.
#[target_feature(enable = "avx512f")]
#[inline]
fn add_halves<F: QuantizedTileFormat>(
    acc: __m512,
    dots: [__m512i; 2],
    scales: [__m512; 2],
    mins: [__m512; 2],
    m: &Meta,
) -> __m512 {
    let v = _mm512_mul_ps(_mm512_cvtepi32_ps(dots[0]), scales[0]);
    let mut v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[1]), scales[1], v);
    if F::MINS {
        v = _mm512_fnmadd_ps(mins[0], _mm512_set1_ps(m.minus_first as f32), v);
        v = _mm512_fnmadd_ps(mins[1], _mm512_set1_ps((m.minus_sum - m.minus_first) as f32), v);
    }
    _mm512_fmadd_ps(v, broadcast(&m.scale), acc)
}

/// Adds 32-block `$b` of the unit at `$w` to the accumulators of `$n` tokens. A macro: assembly with vector registers
/// cannot be in a function that is always inlined.
macro_rules! block {
    ($F:ident, $n:ident, $w:expr, $b:expr, $scales:expr, $x:expr, $metas:expr, $acc:expr) => {{
        let (b, x, metas): (usize, *const u8, *const Meta) = ($b, $x, $metas);
        let mut q = [_mm512_setzero_si512(); 8];
        unroll!(P in [0 1 2 3] { [q[2 * P], q[2 * P + 1]] = $F::pair::<Avx512>($w, b, P); });
        let at = b * $F::HALVES;
        let s0 = _mm512_load_ps($scales.scale(at).as_ptr());
        let m0 = if $F::MINS { _mm512_load_ps($scales.min(at).as_ptr()) } else { s0 };
        if $F::HALVES == 2 {
            let s1 = _mm512_load_ps($scales.scale(at + 1).as_ptr());
            let m1 = if $F::MINS { _mm512_load_ps($scales.min(at + 1).as_ptr()) } else { s1 };
            unroll!(I < $n {
                let m = &*metas.add(I);
                let mut i = start::<$F>(&m.minus_first);
                let mut j = _mm512_sub_epi32(start::<$F>(&m.minus_sum), i);
                two_halves!(i, j, q, x, I * BLOCK);
                $acc[I] = add_halves::<$F>($acc[I], [i, j], [s0, s1], [m0, m1], m);
            });
        } else if $n == 1 {
            let m = &*metas;
            // two chains of half the latency
            let (mut i, mut j) = (start::<$F>(&m.minus_sum), _mm512_setzero_si512());
            two_halves!(i, j, q, x, 0);
            $acc[0] = add::<$F>($acc[0], _mm512_add_epi32(i, j), s0, m0, m);
        } else {
            unroll!(I < $n {
                if I % 2 == 0 {
                    let (m, n) = (&*metas.add(I), &*metas.add(I + 1));
                    let (mut i, mut j) = (start::<$F>(&m.minus_sum), start::<$F>(&n.minus_sum));
                    two_tokens!(i, j, q, x, I * BLOCK);
                    $acc[I] = add::<$F>($acc[I], i, s0, m0, m);
                    $acc[(I + 1) % $n] = add::<$F>($acc[(I + 1) % $n], j, s0, m0, n);
                }
            });
        }
    }};
}

/// One pass for `N` tokens and up to `P` panels, whose tiles it takes in turns.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn pass<F: QuantizedTileFormat, const N: usize, const P: usize>(p: &PanelPass) {
    let mut scales = [const { [const { UnitScales::new() }; PANEL_TILES] }; P];
    // SAFETY: units, tiles and blocks stay in their panel, tokens in the tile; prefetches may leave it.
    unsafe {
        let mut marked = OutlierBlocks::new(slice::from_ref(p));
        let mut sums = [[[_mm512_setzero_ps(); N]; PANEL_TILES]; P];
        let (sums, scales) = (&mut sums[..p.panels], &mut scales[..p.panels]);
        for u in 0..p.units {
            let unit = p.w.add(u * PANEL_TILES * F::UNIT_BYTES);
            for tile in 0..PANEL_TILES {
                for (panel, (sums, scales)) in sums.iter_mut().zip(&mut *scales).enumerate() {
                    let (w, scales) = (unit.add(panel * p.next + tile * F::UNIT_BYTES), &mut scales[tile]);
                    F::scales::<Avx512>(w, scales);
                    let ahead = p.ahead_of((u * PANEL_TILES + tile) * F::UNIT_BYTES);
                    let mut acc = sums[tile]; // a copy keeps LLVM from storing them after every block
                    for b in 0..F::UNIT_BLOCKS {
                        fetch::<Avx512, F>(ahead, w, b);
                        let (x, metas) = p.block(u * F::UNIT_BLOCKS + b);
                        block!(F, N, w, b, scales, x, metas, acc);
                    }
                    sums[tile] = acc;
                }
            }
            if marked.blocks::<F>(u) != 0 {
                for (panel, (sums, scales)) in sums.iter_mut().zip(&*scales).enumerate() {
                    let w = unit.add(panel * p.next);
                    add_outliers::<F, N>(&mut marked, u, w, scales, slice::from_mut(sums));
                }
            }
        }
        for (i, tile) in sums.iter().flatten().enumerate() {
            for (t, v) in tile[..p.tokens.min(N)].iter().enumerate() {
                p.put::<Avx512>(i, t, *v);
            }
        }
    }
}

/// One pass for each of some full tiles of tokens.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`], for each of `passes`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn together<F: QuantizedTileFormat>(passes: &[PanelPass]) {
    for p in passes {
        // SAFETY: what `together` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
        unsafe { pass::<F, TOKEN_TILE, 1>(p) }
    }
}
