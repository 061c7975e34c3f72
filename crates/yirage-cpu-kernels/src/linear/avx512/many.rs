//! From 5 tokens on: the codes of two tiles stay in registers, the sums of all tokens in the first-level cache. Zen 5
//! starts two `vpdpbusd` in a cycle and loads twice, so a number of a token must serve more than one of them.
//!
//! Of what is left the multiply ports are the bound: for a block of 32 and 16 rows, 8 dot products, one multiplication
//! of scales, and one addition of a product, two with mins: 8 of 10 or 11.

use super::{add_outliers, finish};
use crate::activation::{Meta, TOKEN_TILE};
use crate::linear::outliers::OutlierBlocks;
use crate::linear::pass::{PanelPass, fetch};
use crate::linear::unroll::unroll;
use crate::pack::{BLOCK, PANEL_TILES, QuantizedTileFormat, UnitScales};
use crate::simd::Avx512;
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::offset_of;
use std::slice;

// What the assembly takes for granted.
const _: () = assert!(size_of::<Meta>() == 16 && offset_of!(Meta, scale) == 0 && offset_of!(Meta, scaled_sum) == 4);
const _: () = assert!(offset_of!(Meta, minus_sum) == 8 && offset_of!(Meta, minus_first) == 12 && BLOCK == 32);

/// Bytes from a tile's sums to those of the next.
const GAP: usize = TOKEN_TILE * size_of::<__m512>();

/// Adds the codes `$q` and `$r` of a block of two tiles to the sums of `$n` tokens at `$acc` (one tile's) and [`GAP`]
/// bytes on, a token after the other, in assembly from beginning to end: in the compiler's loop codes move to memory.
/// Each four numbers of a token are read once for both tiles. The first half's dot products go to `i` and `j`, the
/// second's to `k` and `l`; what comes before and after them is given.
macro_rules! tokens {
    ($q:ident, $r:ident, $x:expr, $m:expr, $acc:expr, $n:expr, start [$($start:literal)*],
     end [$($end:literal)*], with [$($operands:tt)*]) => {{
        let (x0, x1, i, j, k, l): (__m512i, __m512i, __m512i, __m512i, __m512i, __m512i);
        asm!(
            "2:",
            $($start,)*
            "vpbroadcastd {x0}, dword ptr [{x}]",
            "vpbroadcastd {x1}, dword ptr [{x} + 4]",
            "vpdpbusd {i}, {q0}, {x0}",
            "vpdpbusd {j}, {r0}, {x0}",
            "vpbroadcastd {x0}, dword ptr [{x} + 8]",
            "vpdpbusd {i}, {q1}, {x1}",
            "vpdpbusd {j}, {r1}, {x1}",
            "vpbroadcastd {x1}, dword ptr [{x} + 12]",
            "vpdpbusd {i}, {q2}, {x0}",
            "vpdpbusd {j}, {r2}, {x0}",
            "vpbroadcastd {x0}, dword ptr [{x} + 16]",
            "vpdpbusd {i}, {q3}, {x1}",
            "vpdpbusd {j}, {r3}, {x1}",
            "vpbroadcastd {x1}, dword ptr [{x} + 20]",
            "vpdpbusd {k}, {q4}, {x0}",
            "vpdpbusd {l}, {r4}, {x0}",
            "vpbroadcastd {x0}, dword ptr [{x} + 24]",
            "vpdpbusd {k}, {q5}, {x1}",
            "vpdpbusd {l}, {r5}, {x1}",
            "vpbroadcastd {x1}, dword ptr [{x} + 28]",
            "vpdpbusd {k}, {q6}, {x0}",
            "vpdpbusd {l}, {r6}, {x0}",
            "vpdpbusd {k}, {q7}, {x1}",
            "vpdpbusd {l}, {r7}, {x1}",
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
            gap = const GAP, x0 = out(zmm_reg) x0, x1 = out(zmm_reg) x1, i = out(zmm_reg) i, j = out(zmm_reg) j,
            k = out(zmm_reg) k, l = out(zmm_reg) l,
            q0 = in(zmm_reg) $q[0], q1 = in(zmm_reg) $q[1], q2 = in(zmm_reg) $q[2], q3 = in(zmm_reg) $q[3],
            q4 = in(zmm_reg) $q[4], q5 = in(zmm_reg) $q[5], q6 = in(zmm_reg) $q[6], q7 = in(zmm_reg) $q[7],
            r0 = in(zmm_reg) $r[0], r1 = in(zmm_reg) $r[1], r2 = in(zmm_reg) $r[2], r3 = in(zmm_reg) $r[3],
            r4 = in(zmm_reg) $r[4], r5 = in(zmm_reg) $r[5], r6 = in(zmm_reg) $r[6], r7 = in(zmm_reg) $r[7],
            $($operands)*
            options(nostack));
        let _ = (x0, x1, i, j, k, l);
    }};
}

/// [`tokens`] of a block with one scale. Each tile's products are two chains, added at the end: one would wait for
/// itself.
macro_rules! whole {
    ($F:ident, $n:expr, $q:ident, $r:ident, $x:expr, $m:expr, $acc:expr, [$($mins:literal),*], [$($with:tt)*],
     $s0:ident, $s1:ident) => {{
        if $F::OFFSET == 0 {
            whole!(@ $n, $q, $r, $x, $m, $acc, ["vpxord {i}, {i}, {i}" "vpxord {j}, {j}, {j}"], [$($mins)*], [
                s0 = in(zmm_reg) $s0, s1 = in(zmm_reg) $s1, $($with)*
            ]);
        } else {
            whole!(@ $n, $q, $r, $x, $m, $acc, [
                "vpslld {i}, dword ptr [{m} + 8]{{1to16}}, {shift}"
                "vmovdqa64 {j}, {i}"
            ], [$($mins)*], [
                s0 = in(zmm_reg) $s0, s1 = in(zmm_reg) $s1,
                shift = const $F::OFFSET_SHIFT, $($with)*
            ]);
        }
    }};
    (@ $n:expr, $q:ident, $r:ident, $x:expr, $m:expr, $acc:expr, [$($start:literal)*], [$($mins:literal)*],
     [$($with:tt)*]) => {
        tokens!($q, $r, $x, $m, $acc, $n, start [
                $($start)*
                "vpxord {k}, {k}, {k}"
                "vpxord {l}, {l}, {l}"
            ], end [
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
    ($F:ident, $n:expr, $q:ident, $r:ident, $x:expr, $m:expr, $acc:expr, [$($mins:literal),*], [$($with:tt)*],
     $s0:ident, $t0:ident, $s1:ident, $t1:ident) => {{
        if $F::OFFSET == 0 {
            halves!(@ $n, $q, $r, $x, $m, $acc, [
                "vpxord {i}, {i}, {i}" "vpxord {j}, {j}, {j}" "vpxord {k}, {k}, {k}" "vpxord {l}, {l}, {l}"
            ], [$($mins)*], [
                s0 = in(zmm_reg) $s0, s1 = in(zmm_reg) $s1, t0 = in(zmm_reg) $t0, t1 = in(zmm_reg) $t1,
                $($with)*
            ]);
        } else {
            halves!(@ $n, $q, $r, $x, $m, $acc, [
                "vpslld {i}, dword ptr [{m} + 12]{{1to16}}, {shift}"
                "vpslld {k}, dword ptr [{m} + 8]{{1to16}}, {shift}"
                "vpsubd {k}, {k}, {i}"
                "vmovdqa64 {j}, {i}"
                "vmovdqa64 {l}, {k}"
            ], [$($mins)*], [
                s0 = in(zmm_reg) $s0, s1 = in(zmm_reg) $s1, t0 = in(zmm_reg) $t0, t1 = in(zmm_reg) $t1,
                shift = const $F::OFFSET_SHIFT, $($with)*
            ]);
        }
    }};
    (@ $n:expr, $q:ident, $r:ident, $x:expr, $m:expr, $acc:expr, [$($start:literal)*], [$($mins:literal)*],
     [$($with:tt)*]) => {
        tokens!($q, $r, $x, $m, $acc, $n, start [$($start)*], end [
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

/// Adds 32-block `b` of the units at `w`, block `at` of all, to the sums of all tokens, which stay in memory: the
/// registers hold the codes of both tiles.
///
/// # Safety
/// As for [`together`].
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn two_tiles<F: QuantizedTileFormat>(
    w: [*const u8; 2],
    b: usize,
    scales: &[UnitScales; 2],
    passes: &[PanelPass],
    at: usize,
    pair: usize,
    sums: &mut [[[__m512; TOKEN_TILE]; PANEL_TILES]],
) {
    // SAFETY: what `two_tiles` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        let (mut q, mut r) = ([_mm512_setzero_si512(); 8], [_mm512_setzero_si512(); 8]);
        unroll!(P in [0 1 2 3] {
            [q[2 * P], q[2 * P + 1]] = F::pair::<Avx512>(w[0], b, P);
            [r[2 * P], r[2 * P + 1]] = F::pair::<Avx512>(w[1], b, P);
        });
        let at_half = |half: usize| b * F::HALVES + half.min(F::HALVES - 1);
        let row = |tile: usize, half: usize| _mm512_load_ps(scales[tile].scale(at_half(half)).as_ptr());
        let mins = |tile: usize| if F::MINS { scales[tile].min(at_half(0)).as_ptr() } else { std::ptr::null() };
        let (s0, s1) = (row(0, 0), row(1, 0));
        for (p, sums) in passes.iter().zip(sums) {
            let (x, metas) = p.block(at);
            let acc = sums[pair].as_mut_ptr();
            if F::HALVES == 2 {
                let (t0, t1) = (row(0, 1), row(1, 1));
                if F::MINS {
                    halves!(F, p.tokens, q, r, x, metas, acc, [
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
                    halves!(F, p.tokens, q, r, x, metas, acc, [], [], s0, t0, s1, t1);
                }
            } else if F::MINS {
                let (m0, m1) = (_mm512_load_ps(mins(0)), _mm512_load_ps(mins(1)));
                whole!(F, p.tokens, q, r, x, metas, acc, [
                    "vbroadcastss {x1}, dword ptr [{m} + 4]",
                    "vfmadd231ps {i}, {m0}, {x1}",
                    "vfmadd231ps {j}, {m1}, {x1}"
                ], [m0 = in(zmm_reg) m0, m1 = in(zmm_reg) m1,], s0, s1);
            } else {
                whole!(F, p.tokens, q, r, x, metas, acc, [], [], s0, s1);
            }
        }
    }
}

/// One pass for each of some tiles of tokens that share the panel; if they are several, full ones.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`], for each of `passes`; there are at most `T`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn together<F: QuantizedTileFormat, const T: usize>(passes: &[PanelPass]) {
    let mut scales = [const { UnitScales::new() }; PANEL_TILES];
    // SAFETY: units, tiles and blocks stay in the panel, tokens in their tiles; prefetches may leave it.
    unsafe {
        let mut sums = [[[_mm512_setzero_ps(); TOKEN_TILE]; PANEL_TILES]; T];
        let (sums, mut marked) = (&mut sums[..passes.len()], OutlierBlocks::new(passes));
        let mut unit = passes[0].w;
        for u in 0..passes[0].units {
            let mut w = unit;
            marked.fetch::<F>(u);
            for (pair, scales) in scales.as_chunks_mut().0.iter_mut().enumerate() {
                let tiles = [w, w.add(F::UNIT_BYTES)];
                for (scales, tile) in scales.iter_mut().zip(tiles) {
                    F::scales::<Avx512>(tile, scales);
                }
                for b in 0..F::UNIT_BLOCKS {
                    // both tiles' bytes in ascending order: the hardware follows one stream
                    fetch::<Avx512, F>(passes[0].ahead, w, 2 * b);
                    fetch::<Avx512, F>(passes[0].ahead, w, 2 * b + 1);
                    two_tiles::<F>(tiles, b, scales, passes, u * F::UNIT_BLOCKS + b, 2 * pair, sums);
                }
                w = w.add(2 * F::UNIT_BYTES);
            }
            if marked.blocks::<F>(u) != 0 {
                add_outliers::<F, TOKEN_TILE>(&mut marked, u, unit, &scales, sums);
            }
            unit = w;
        }
        finish(passes, sums);
    }
}

/// One pass for any number of tokens.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
pub(super) unsafe fn pass<F: QuantizedTileFormat>(p: &PanelPass) {
    // SAFETY: what `pass` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { together::<F, 1>(slice::from_ref(p)) }
}
