//! AVX-512 kernels: a tile of 16 rows is one register; `vpdpbusd` takes 4 k of 16 rows at once, the activations being
//! its broadcast memory operand, so there are no horizontal sums and no broadcast loads.
//!
//! Two loop orders over a panel. Up to 8 tokens: unit by unit over the four tiles, one memory stream without
//! software prefetch (it makes the hardware's slower). 16 tokens: tile by tile, accumulators in registers, weights
//! prefetched some blocks ahead, since the hardware loses their stream among those of the activations.
//!
//! The chains of `vpdpbusd` are assembly: LLVM reorders intrinsics until the accumulators spill.

use super::decoded;
use super::float;
use super::lanes::Avx512Lanes;
use super::outliers;
use super::pass::{Pass, PassFn, fetch};
use super::unroll::unroll;
use crate::activation::Meta;
use crate::pack::{BF16, BLOCK, Codes, PANEL_TILES, Scales, Tile};
use std::arch::asm;
use std::arch::x86_64::*;

/// Kernels for f32 activations.
pub(super) fn float_passes<F: Tile>() -> [PassFn; 5] {
    [float_pass::<F, 1>, float_pass::<F, 2>, float_pass::<F, 4>, float_pass::<F, 8>, float_pass::<F, 8>]
}

decoded::functions!(Avx512Lanes, target_feature(enable = "avx512f,avx512bw,avx512vl"));

/// Kernels for int8 activations.
pub(super) fn codes_passes<F: Codes>() -> [PassFn; 5] {
    [codes_pass::<F, 1>, codes_pass::<F, 2>, codes_pass::<F, 4>, codes_pass::<F, 8>, codes_pass::<F, 16>]
}

/// Kernels for BF16 weights and bf16 activations.
pub(super) const BF16_PASSES: [PassFn; 5] =
    [bf16_pass::<1>, bf16_pass::<2>, bf16_pass::<4>, bf16_pass::<8>, bf16_pass::<16>];

/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn float_pass<F: Tile, const T: usize>(p: &Pass) {
    // SAFETY: as promised by the caller.
    unsafe { float::pass::<Avx512Lanes, F, T>(p) }
}

/// Eight groups of one token, in two chains of half the latency.
macro_rules! one_token {
    ($i:ident, $w:ident, $x:expr) => {
        let mut j = _mm512_setzero_si512();
        asm!(
            "vpdpbusd {i}, {w0}, dword ptr [{x}]{{1to16}}",
            "vpdpbusd {j}, {w4}, dword ptr [{x} + 16]{{1to16}}",
            "vpdpbusd {i}, {w1}, dword ptr [{x} + 4]{{1to16}}",
            "vpdpbusd {j}, {w5}, dword ptr [{x} + 20]{{1to16}}",
            "vpdpbusd {i}, {w2}, dword ptr [{x} + 8]{{1to16}}",
            "vpdpbusd {j}, {w6}, dword ptr [{x} + 24]{{1to16}}",
            "vpdpbusd {i}, {w3}, dword ptr [{x} + 12]{{1to16}}",
            "vpdpbusd {j}, {w7}, dword ptr [{x} + 28]{{1to16}}",
            i = inout(zmm_reg) $i, j = inout(zmm_reg) j, x = in(reg) $x,
            w0 = in(zmm_reg) $w[0], w1 = in(zmm_reg) $w[1], w2 = in(zmm_reg) $w[2], w3 = in(zmm_reg) $w[3],
            w4 = in(zmm_reg) $w[4], w5 = in(zmm_reg) $w[5], w6 = in(zmm_reg) $w[6], w7 = in(zmm_reg) $w[7],
            options(nostack, readonly, preserves_flags));
        $i = _mm512_add_epi32($i, j);
    };
}

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
fn start<F: Codes>(minus_sum: &i32) -> __m512i {
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
fn add<F: Codes>(acc: __m512, dot: __m512i, scale: __m512, min: __m512, m: &Meta) -> __m512 {
    let scale = _mm512_mul_ps(scale, broadcast(&m.scale));
    let acc = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dot), scale, acc);
    if F::MINS { _mm512_fmadd_ps(min, broadcast(&m.scaled_sum), acc) } else { acc }
}

/// The same of a block with two scales.
#[target_feature(enable = "avx512f")]
#[inline]
fn add_halves<F: Codes>(acc: __m512, dots: [__m512i; 2], scales: [__m512; 2], mins: [__m512; 2], m: &Meta) -> __m512 {
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
        unroll!(P in [0 1 2 3] { [q[2 * P], q[2 * P + 1]] = $F::pair::<Avx512Lanes>($w, b, P); });
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
            let mut i = start::<$F>(&m.minus_sum);
            one_token!(i, q, x);
            $acc[0] = add::<$F>($acc[0], i, s0, m0, m);
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

/// [`outliers::add`], out of line: or the loop over all blocks shares its registers with it.
///
/// # Safety
/// As for that.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
unsafe fn add_outliers<F: Codes, const N: usize>(p: &Pass, acc: &mut [[__m512; N]; PANEL_TILES]) {
    // SAFETY: as promised by the caller.
    unsafe { outliers::add::<Avx512Lanes, F>(p, acc) }
}

/// The eight groups of a token, of two tiles: each four numbers of the token are read once.
macro_rules! two_tiles {
    ($i:ident, $j:ident, $q:ident, $r:ident, $x:expr, $o:literal, $a:literal $b:literal $c:literal $d:literal) => {
        let (x0, x1): (__m512i, __m512i);
        asm!(
            "vpbroadcastd {x0}, dword ptr [{x} + {o}]",
            "vpbroadcastd {x1}, dword ptr [{x} + {o} + 4]",
            "vpdpbusd {i}, {q0}, {x0}",
            "vpdpbusd {j}, {r0}, {x0}",
            "vpbroadcastd {x0}, dword ptr [{x} + {o} + 8]",
            "vpdpbusd {i}, {q1}, {x1}",
            "vpdpbusd {j}, {r1}, {x1}",
            "vpbroadcastd {x1}, dword ptr [{x} + {o} + 12]",
            "vpdpbusd {i}, {q2}, {x0}",
            "vpdpbusd {j}, {r2}, {x0}",
            "vpdpbusd {i}, {q3}, {x1}",
            "vpdpbusd {j}, {r3}, {x1}",
            i = inout(zmm_reg) $i, j = inout(zmm_reg) $j, x = in(reg) $x, o = const $o,
            x0 = out(zmm_reg) x0, x1 = out(zmm_reg) x1,
            q0 = in(zmm_reg) $q[$a], q1 = in(zmm_reg) $q[$b], q2 = in(zmm_reg) $q[$c], q3 = in(zmm_reg) $q[$d],
            r0 = in(zmm_reg) $r[$a], r1 = in(zmm_reg) $r[$b], r2 = in(zmm_reg) $r[$c], r3 = in(zmm_reg) $r[$d],
            options(nostack, readonly, preserves_flags));
        let _ = (x0, x1);
    };
}

/// Adds 32-block `b` of the units at `w` to the sums of `tokens` tokens, which stay in memory: the registers hold the
/// codes of both tiles.
///
/// # Safety
/// As for [`PassFn`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn two_tiles<F: Codes>(
    w: [*const u8; 2],
    b: usize,
    scales: [&Scales; 2],
    x: *const u8,
    metas: *const Meta,
    acc: [*mut __m512; 2],
    tokens: usize,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let (mut q, mut r) = ([_mm512_setzero_si512(); 8], [_mm512_setzero_si512(); 8]);
        unroll!(P in [0 1 2 3] {
            [q[2 * P], q[2 * P + 1]] = F::pair::<Avx512Lanes>(w[0], b, P);
            [r[2 * P], r[2 * P + 1]] = F::pair::<Avx512Lanes>(w[1], b, P);
        });
        let at = |half: usize| b * F::HALVES + half.min(F::HALVES - 1);
        let scale = scales.map(|s| [0, 1].map(|half| _mm512_load_ps(s.scale(at(half)).as_ptr())));
        let min = scales.map(|s| {
            [0, 1].map(|half| if F::MINS { _mm512_load_ps(s.min(at(half)).as_ptr()) } else { _mm512_setzero_ps() })
        });
        for t in 0..tokens {
            let (m, x) = (&*metas.add(t), x.add(t * BLOCK));
            let (a, c) = (acc[0].add(t), acc[1].add(t));
            if F::HALVES == 2 {
                let first = start::<F>(&m.minus_first);
                let second = _mm512_sub_epi32(start::<F>(&m.minus_sum), first);
                let (mut i, mut j, mut k, mut l) = (first, first, second, second);
                two_tiles!(i, j, q, r, x, 0, 0 1 2 3);
                two_tiles!(k, l, q, r, x, 16, 4 5 6 7);
                *a = add_halves::<F>(*a, [i, k], scale[0], min[0], m);
                *c = add_halves::<F>(*c, [j, l], scale[1], min[1], m);
            } else {
                let mut i = start::<F>(&m.minus_sum);
                let mut j = i;
                two_tiles!(i, j, q, r, x, 0, 0 1 2 3);
                two_tiles!(i, j, q, r, x, 16, 4 5 6 7);
                *a = add::<F>(*a, i, scale[0][0], min[0][0], m);
                *c = add::<F>(*c, j, scale[1][0], min[1][0], m);
            }
        }
    }
}

/// One pass for a tile of `N` tokens.
///
/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn codes_pass<F: Codes, const N: usize>(p: &Pass) {
    let mut scales = Scales::new();
    // SAFETY: units, tiles and blocks stay in the panel, tokens in the tile; prefetches may leave it.
    unsafe {
        let mut sums = [[_mm512_setzero_ps(); N]; PANEL_TILES];
        if N >= 8 {
            let mut second = Scales::new();
            let mut w = p.w;
            for u in 0..p.units {
                for pair in sums.chunks_exact_mut(2) {
                    F::scales::<Avx512Lanes>(w, &mut scales);
                    F::scales::<Avx512Lanes>(w.add(F::UNIT_BYTES), &mut second);
                    let acc = [pair[0].as_mut_ptr(), pair[1].as_mut_ptr()];
                    for b in 0..F::UNIT_BLOCKS {
                        fetch::<Avx512Lanes, F>(w, b);
                        fetch::<Avx512Lanes, F>(w.add(F::UNIT_BYTES), b);
                        let (x, metas) = p.block(u * F::UNIT_BLOCKS + b);
                        two_tiles::<F>([w, w.add(F::UNIT_BYTES)], b, [&scales, &second], x, metas, acc, N);
                    }
                    w = w.add(2 * F::UNIT_BYTES);
                }
            }
        } else {
            let mut w = p.w;
            for u in 0..p.units {
                for tile in &mut sums {
                    F::scales::<Avx512Lanes>(w, &mut scales);
                    let mut acc = *tile; // a copy keeps LLVM from storing them after every block
                    for b in 0..F::UNIT_BLOCKS {
                        fetch::<Avx512Lanes, F>(w, b);
                        let (x, metas) = p.block(u * F::UNIT_BLOCKS + b);
                        block!(F, N, w, b, scales, x, metas, acc);
                    }
                    *tile = acc;
                    w = w.add(F::UNIT_BYTES);
                }
            }
        }
        add_outliers::<F, N>(p, &mut sums);
        for (i, tile) in sums.iter().enumerate() {
            unroll!(I < N { p.put::<Avx512Lanes>(i, I, tile[I]); });
        }
    }
}

/// BF16 weights times bf16 activations for a tile of `N` tokens.
///
/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
unsafe fn bf16_pass<const N: usize>(p: &Pass) {
    // A register of bf16 pairs from the 64 bytes of 16 rows, or from one token's pair.
    macro_rules! pairs {
        ($v:expr) => {
            std::mem::transmute::<__m512i, __m512bh>($v)
        };
    }
    macro_rules! unit {
        ($w:expr, $x:expr, $acc:expr, $ahead:expr) => {
            for i in 0..BLOCK / 2 {
                if $ahead > 0 {
                    _mm_prefetch::<_MM_HINT_T0>($w.wrapping_add($ahead + 64 * i).cast());
                }
                let v = pairs!(_mm512_loadu_si512($w.add(64 * i).cast()));
                unroll!(I < N {
                    let x = $x.add(I * 2 * BLOCK + 4 * i).cast::<i32>().read_unaligned();
                    $acc[I] = _mm512_dpbf16_ps($acc[I], v, pairs!(_mm512_set1_epi32(x)));
                });
            }
        };
    }
    const STEP: usize = PANEL_TILES * BF16::UNIT_BYTES;
    // SAFETY: units and tiles stay in the panel, tokens in the tile; prefetches may leave it.
    unsafe {
        if N == 16 {
            for tile in 0..PANEL_TILES {
                let mut acc = [_mm512_setzero_ps(); N];
                for u in 0..p.units {
                    let w = p.w.add(u * STEP + tile * BF16::UNIT_BYTES);
                    unit!(w, p.x.add(u * N * 2 * BLOCK), acc, 2 * STEP);
                }
                unroll!(I < N { p.put::<Avx512Lanes>(tile, I, acc[I]); });
            }
        } else {
            let mut sums = [[_mm512_setzero_ps(); N]; PANEL_TILES];
            for u in 0..p.units {
                for (i, tile) in sums.iter_mut().enumerate() {
                    let mut acc = *tile;
                    unit!(p.w.add(u * STEP + i * BF16::UNIT_BYTES), p.x.add(u * N * 2 * BLOCK), acc, 0);
                    *tile = acc;
                }
            }
            for (i, tile) in sums.iter().enumerate() {
                unroll!(I < N { p.put::<Avx512Lanes>(i, I, tile[I]); });
            }
        }
    }
}
