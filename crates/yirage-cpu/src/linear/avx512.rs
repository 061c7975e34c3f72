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
use super::pass::{Pass, PassFn, PassesFn, TOGETHER, fetch};
use super::unroll::unroll;
use crate::activation::{Meta, TOKEN_TILE};
use crate::pack::{BF16, BLOCK, Codes, PANEL_TILES, Scales, Tile};
use std::arch::asm;
use std::arch::x86_64::*;
use std::slice;

/// Kernels for f32 activations.
pub(super) fn float_passes<F: Tile>() -> [PassFn; 5] {
    [float_pass::<F, 1>, float_pass::<F, 2>, float_pass::<F, 4>, float_pass::<F, 8>, float_pass::<F, 8>]
}

decoded::functions!(Avx512Lanes, target_feature(enable = "avx512f,avx512bw,avx512vl"));

/// Kernels for int8 activations.
pub(super) fn codes_passes<F: Codes>() -> [PassFn; 5] {
    [codes_pass::<F, 1>, codes_pass::<F, 2>, codes_pass::<F, 4>, one::<F, 8>, one::<F, TOKEN_TILE>]
}

/// Several full tiles with int8 activations.
pub(super) fn together<F: Codes>() -> PassesFn {
    codes_together::<F, TOKEN_TILE, TOGETHER>
}

/// # Safety
/// As for [`PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn one<F: Codes, const N: usize>(p: &Pass) {
    // SAFETY: as promised by the caller.
    unsafe { codes_together::<F, N, 1>(slice::from_ref(p)) }
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
unsafe fn add_outliers<F: Codes, const N: usize>(passes: &[Pass], sums: &mut [[[__m512; N]; PANEL_TILES]]) {
    // SAFETY: as promised by the caller.
    unsafe { outliers::add::<Avx512Lanes, F>(passes, sums) }
}

/// Adds the codes `$q` and `$r` of a block of two tiles to the sums of `$n` tokens at `$acc` (one tile's) and `$gap` bytes
/// on, a token after the other, in assembly from beginning to end: in the compiler's loop codes move to memory. Each four
/// numbers of a token are read once for both tiles. What comes before and after the dot products is given.
macro_rules! tokens {
    ($q:ident, $r:ident, $x:expr, $m:expr, $acc:expr, $n:expr, $gap:expr, start [$($start:literal)*],
     sums $i0:literal $j0:literal $i1:literal $j1:literal, end [$($end:literal)*], with [$($operands:tt)*]) => {{
        let (x0, x1, i, j): (__m512i, __m512i, __m512i, __m512i);
        asm!(
            "2:",
            $($start,)*
            "vpbroadcastd {x0}, dword ptr [{x}]",
            "vpbroadcastd {x1}, dword ptr [{x} + 4]",
            concat!("vpdpbusd ", $i0, ", {q0}, {x0}"),
            concat!("vpdpbusd ", $j0, ", {r0}, {x0}"),
            "vpbroadcastd {x0}, dword ptr [{x} + 8]",
            concat!("vpdpbusd ", $i0, ", {q1}, {x1}"),
            concat!("vpdpbusd ", $j0, ", {r1}, {x1}"),
            "vpbroadcastd {x1}, dword ptr [{x} + 12]",
            concat!("vpdpbusd ", $i0, ", {q2}, {x0}"),
            concat!("vpdpbusd ", $j0, ", {r2}, {x0}"),
            "vpbroadcastd {x0}, dword ptr [{x} + 16]",
            concat!("vpdpbusd ", $i0, ", {q3}, {x1}"),
            concat!("vpdpbusd ", $j0, ", {r3}, {x1}"),
            "vpbroadcastd {x1}, dword ptr [{x} + 20]",
            concat!("vpdpbusd ", $i1, ", {q4}, {x0}"),
            concat!("vpdpbusd ", $j1, ", {r4}, {x0}"),
            "vpbroadcastd {x0}, dword ptr [{x} + 24]",
            concat!("vpdpbusd ", $i1, ", {q5}, {x1}"),
            concat!("vpdpbusd ", $j1, ", {r5}, {x1}"),
            "vpbroadcastd {x1}, dword ptr [{x} + 28]",
            concat!("vpdpbusd ", $i1, ", {q6}, {x0}"),
            concat!("vpdpbusd ", $j1, ", {r6}, {x0}"),
            concat!("vpdpbusd ", $i1, ", {q7}, {x1}"),
            concat!("vpdpbusd ", $j1, ", {r7}, {x1}"),
            "vbroadcastss {x0}, dword ptr [{m}]",
            $($end,)*
            "vmovaps zmmword ptr [{acc}], {i}",
            "vmovaps zmmword ptr [{acc} + {gap}], {j}",
            "add {x}, 32",
            "add {m}, 16",
            "add {acc}, 64",
            "dec {n}",
            "jnz 2b",
            x = inout(reg) $x => _, m = inout(reg) $m => _, acc = inout(reg) $acc => _, n = inout(reg) $n => _,
            gap = const $gap, x0 = out(zmm_reg) x0, x1 = out(zmm_reg) x1, i = out(zmm_reg) i, j = out(zmm_reg) j,
            q0 = in(zmm_reg) $q[0], q1 = in(zmm_reg) $q[1], q2 = in(zmm_reg) $q[2], q3 = in(zmm_reg) $q[3],
            q4 = in(zmm_reg) $q[4], q5 = in(zmm_reg) $q[5], q6 = in(zmm_reg) $q[6], q7 = in(zmm_reg) $q[7],
            r0 = in(zmm_reg) $r[0], r1 = in(zmm_reg) $r[1], r2 = in(zmm_reg) $r[2], r3 = in(zmm_reg) $r[3],
            r4 = in(zmm_reg) $r[4], r5 = in(zmm_reg) $r[5], r6 = in(zmm_reg) $r[6], r7 = in(zmm_reg) $r[7],
            $($operands)*
            options(nostack));
        let _ = (x0, x1, i, j);
    }};
}

/// [`tokens`] of a block with one scale.
macro_rules! whole {
    ($F:ident, $N:ident, $q:ident, $r:ident, $x:expr, $m:expr, $acc:expr, [$($mins:literal),*], [$($with:tt)*],
     $s0:ident, $s1:ident) => {{
        let (k, l): (__m512i, __m512i);
        if $F::OFFSET == 0 {
            whole!(@ $N, $q, $r, $x, $m, $acc, ["vpxord {i}, {i}, {i}" "vpxord {j}, {j}, {j}" "vpxord {k}, {k}, {k}" "vpxord {l}, {l}, {l}"], [$($mins)*],
                [s0 = in(zmm_reg) $s0, s1 = in(zmm_reg) $s1, k = out(zmm_reg) k, l = out(zmm_reg) l, $($with)*]);
        } else {
            whole!(@ $N, $q, $r, $x, $m, $acc,
                ["vpslld {i}, dword ptr [{m} + 8]{{1to16}}, {shift}" "vmovdqa64 {j}, {i}" "vpxord {k}, {k}, {k}" "vpxord {l}, {l}, {l}"], [$($mins)*],
                [s0 = in(zmm_reg) $s0, s1 = in(zmm_reg) $s1, k = out(zmm_reg) k, l = out(zmm_reg) l, shift = const $F::OFFSET_SHIFT, $($with)*]);
        }
        let _ = (k, l);
    }};
    (@ $N:ident, $q:ident, $r:ident, $x:expr, $m:expr, $acc:expr, [$($start:literal)*], [$($mins:literal)*],
     [$($with:tt)*]) => {
        tokens!($q, $r, $x, $m, $acc, $N, $N * size_of::<__m512>(), start [$($start)*], sums "{i}" "{j}" "{k}" "{l}",
            end [
                "vpaddd {i}, {i}, {k}"
                "vpaddd {j}, {j}, {l}"
                "vmulps {x1}, {s0}, {x0}"
                "vcvtdq2ps {i}, {i}"
                "vfmadd213ps {i}, {x1}, zmmword ptr [{acc}]"
                "vmulps {x1}, {s1}, {x0}"
                "vcvtdq2ps {j}, {j}"
                "vfmadd213ps {j}, {x1}, zmmword ptr [{acc} + {gap}]"
                $($mins)*
            ], with [$($with)*])
    };
}

/// [`tokens`] of a block with two scales.
macro_rules! halves {
    ($F:ident, $N:ident, $q:ident, $r:ident, $x:expr, $m:expr, $acc:expr, [$($mins:literal),*], [$($with:tt)*],
     $s0:ident, $t0:ident, $s1:ident, $t1:ident) => {{
        let (k, l): (__m512i, __m512i);
        if $F::OFFSET == 0 {
            halves!(@ $N, $q, $r, $x, $m, $acc, [
                "vpxord {i}, {i}, {i}" "vpxord {j}, {j}, {j}" "vpxord {k}, {k}, {k}" "vpxord {l}, {l}, {l}"
            ], [$($mins)*], [
                s0 = in(zmm_reg) $s0, s1 = in(zmm_reg) $s1, t0 = in(zmm_reg) $t0, t1 = in(zmm_reg) $t1,
                k = out(zmm_reg) k, l = out(zmm_reg) l, $($with)*
            ]);
        } else {
            halves!(@ $N, $q, $r, $x, $m, $acc, [
                "vpslld {i}, dword ptr [{m} + 12]{{1to16}}, {shift}"
                "vpslld {k}, dword ptr [{m} + 8]{{1to16}}, {shift}"
                "vpsubd {k}, {k}, {i}"
                "vmovdqa64 {j}, {i}"
                "vmovdqa64 {l}, {k}"
            ], [$($mins)*], [
                s0 = in(zmm_reg) $s0, s1 = in(zmm_reg) $s1, t0 = in(zmm_reg) $t0, t1 = in(zmm_reg) $t1,
                k = out(zmm_reg) k, l = out(zmm_reg) l, shift = const $F::OFFSET_SHIFT, $($with)*
            ]);
        }
        let _ = (k, l);
    }};
    (@ $N:ident, $q:ident, $r:ident, $x:expr, $m:expr, $acc:expr, [$($start:literal)*], [$($mins:literal)*],
     [$($with:tt)*]) => {
        tokens!($q, $r, $x, $m, $acc, $N, $N * size_of::<__m512>(), start [$($start)*], sums "{i}" "{j}" "{k}" "{l}",
            end [
                "vcvtdq2ps {i}, {i}"
                "vmulps {i}, {i}, {s0}"
                "vcvtdq2ps {k}, {k}"
                "vfmadd231ps {i}, {k}, {t0}"
                "vcvtdq2ps {j}, {j}"
                "vmulps {j}, {j}, {s1}"
                "vcvtdq2ps {l}, {l}"
                "vfmadd231ps {j}, {l}, {t1}"
                $($mins)*
                "vfmadd213ps {i}, {x0}, zmmword ptr [{acc}]"
                "vfmadd213ps {j}, {x0}, zmmword ptr [{acc} + {gap}]"
            ], with [$($with)*])
    };
}

/// Adds 32-block `b` of the units at `w`, block `at` of all, to the sums of all tokens, which stay in memory: the registers
/// hold the codes of both tiles.
///
/// # Safety
/// As for [`codes_together`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn two_tiles<F: Codes, const N: usize>(
    w: [*const u8; 2],
    b: usize,
    scales: &[Scales; 2],
    passes: &[Pass],
    at: usize,
    pair: usize,
    sums: &mut [[[__m512; N]; PANEL_TILES]],
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let (mut q, mut r) = ([_mm512_setzero_si512(); 8], [_mm512_setzero_si512(); 8]);
        unroll!(P in [0 1 2 3] {
            [q[2 * P], q[2 * P + 1]] = F::pair::<Avx512Lanes>(w[0], b, P);
            [r[2 * P], r[2 * P + 1]] = F::pair::<Avx512Lanes>(w[1], b, P);
        });
        let at_half = |half: usize| b * F::HALVES + half.min(F::HALVES - 1);
        let row = |tile: usize, half: usize| _mm512_load_ps(scales[tile].scale(at_half(half)).as_ptr());
        let mins = |tile: usize| if F::MINS { scales[tile].min(at_half(0)).as_ptr() } else { std::ptr::null() };
        let (s0, s1) = (row(0, 0), row(1, 0));
        for (p, sums) in passes.iter().zip(sums) {
            let (x, metas) = (p.x.add(at * N * BLOCK), p.metas.add(at * N));
            let acc = sums[pair].as_mut_ptr();
            if F::HALVES == 2 {
                let (t0, t1) = (row(0, 1), row(1, 1));
                if F::MINS {
                    halves!(F, N, q, r, x, metas, acc, [
                        "vcvtdq2ps {x1}, dword ptr [{m} + 12]{{1to16}}",
                        "vfnmadd231ps {i}, {x1}, zmmword ptr [{m0}]",
                        "vfnmadd231ps {j}, {x1}, zmmword ptr [{m1}]",
                        "vpbroadcastd {x1}, dword ptr [{m} + 8]",
                        "vpsubd {x1}, {x1}, dword ptr [{m} + 12]{{1to16}}",
                        "vcvtdq2ps {x1}, {x1}",
                        "vfnmadd231ps {i}, {x1}, zmmword ptr [{m0} + 64]",
                        "vfnmadd231ps {j}, {x1}, zmmword ptr [{m1} + 64]"
                    ], [m0 = in(reg) mins(0), m1 = in(reg) mins(1),], s0, t0, s1, t1);
                } else {
                    halves!(F, N, q, r, x, metas, acc, [], [], s0, t0, s1, t1);
                }
            } else if F::MINS {
                let (m0, m1) = (_mm512_load_ps(mins(0)), _mm512_load_ps(mins(1)));
                whole!(F, N, q, r, x, metas, acc, [
                    "vbroadcastss {x1}, dword ptr [{m} + 4]",
                    "vfmadd231ps {i}, {m0}, {x1}",
                    "vfmadd231ps {j}, {m1}, {x1}"
                ], [m0 = in(zmm_reg) m0, m1 = in(zmm_reg) m1,], s0, s1);
            } else {
                whole!(F, N, q, r, x, metas, acc, [], [], s0, s1);
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
        finish::<F, N>(slice::from_ref(p), slice::from_mut(&mut sums));
    }
}

/// One pass for each of some tiles of `N` tokens that share the panel.
///
/// # Safety
/// As for [`PassFn`], for each of `passes`; there are at most [`TOGETHER`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn codes_together<F: Codes, const N: usize, const T: usize>(passes: &[Pass]) {
    let mut scales = [const { Scales::new() }; 2];
    // SAFETY: units, tiles and blocks stay in the panel, tokens in their tiles; prefetches may leave it.
    unsafe {
        let mut sums = [[[_mm512_setzero_ps(); N]; PANEL_TILES]; T];
        let mut w = passes[0].w;
        for u in 0..passes[0].units {
            for pair in [0, 2] {
                let tiles = [w, w.add(F::UNIT_BYTES)];
                for (scales, tile) in scales.iter_mut().zip(tiles) {
                    F::scales::<Avx512Lanes>(tile, scales);
                }
                for b in 0..F::UNIT_BLOCKS {
                    fetch::<Avx512Lanes, F>(tiles[0], b);
                    fetch::<Avx512Lanes, F>(tiles[1], b);
                    two_tiles::<F, N>(
                        tiles,
                        b,
                        &scales,
                        passes,
                        u * F::UNIT_BLOCKS + b,
                        pair,
                        &mut sums[..passes.len()],
                    );
                }
                w = w.add(2 * F::UNIT_BYTES);
            }
        }
        finish::<F, N>(passes, &mut sums[..passes.len()]);
    }
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
