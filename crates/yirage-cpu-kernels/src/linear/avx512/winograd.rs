//! Full tiles of tokens with codes of 4 bits, by Winograd's inner product (S. Winograd, A New Algorithm for Inner
//! Product, IEEE Transactions on Computers C-17, 1968): half the multiplications, and additions in their place.
//!
//! The numbers `a` and `b` of a token, 16 apart in a block, and the codes `p` and `q` of a row that belong to them:
//! `(p + b) * (q + a) = p * a + q * b + p * q + a * b`. Of the last two products one sum belongs to the row and one to the
//! token, and both are made once ([`WinogradWeights::minus`], [`WinogradActivations`]). All of it is exact in integers, so the sums are those of the
//! other kernels. `p + b` has 8 bits since a number of a token is `q8a::MOST` at most.
//!
//! Processors with more ports for additions than for multiplications gain: on Zen 4 and 5 two ports multiply and four add
//! bytes. For a block, a token and 16 rows there are 4 dot products, 8 additions of bytes, one of the token's sums, and what
//! applies the scales: 17 instructions, two in a cycle, where [`super::many`] has 11 multiplications, one in a cycle.
//!
//! Two tokens go side by side, and the scales of the two before them are applied between their dot products: behind those
//! of their own they would wait for them.

use super::{add_outliers, finish};
use crate::activation::{TOKEN_TILE, WinogradActivations};
use crate::linear::outliers::OutlierBlocks;
use crate::linear::pass::{PanelPass, PassesFn, fetch};
use crate::linear::unroll::unroll;
use crate::linear::variant::MOST_TOGETHER;
use crate::pack::{PANEL_TILES, QuantizedTileFormat, TILE_ROWS, UnitScales};
use crate::simd::Avx512;
use std::arch::asm;
use std::arch::x86_64::*;
use std::mem::offset_of;

// What the assembly takes for granted.
const _: () = assert!(
    size_of::<WinogradActivations>() == 48
        && offset_of!(WinogradActivations, scale) == 8
        && offset_of!(WinogradActivations, scaled_sum) == 12
);
const _: () = assert!(
    offset_of!(WinogradActivations, first) == 16 && offset_of!(WinogradActivations, second) == 32 && TOKEN_TILE == 16
);

/// Where minus a token's share is.
const fn minus_token<F: QuantizedTileFormat>() -> usize {
    if F::OFFSET == 0 { offset_of!(WinogradActivations, plain) } else { offset_of!(WinogradActivations, offset) }
}

/// A block of 16 rows, ready for a token's numbers to be added.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct WinogradWeights {
    /// The codes of the first 16 numbers: with a token's second 16, which are stored plus [`WinogradActivations::MORE`], they are unsigned
    /// bytes.
    first: [[u8; 64]; 4],
    /// Those of the second 16 numbers, less [`WinogradActivations::LESS`]: with a token's first 16 they are signed bytes.
    second: [[u8; 64]; 4],
    /// Minus the sum of their products, those of the first with [`WinogradActivations::MORE`] more; a row each.
    minus: [i32; TILE_ROWS],
    scale: [f32; TILE_ROWS],
    /// Not set for formats without mins.
    min: [f32; TILE_ROWS],
}

impl WinogradWeights {
    const EMPTY: WinogradWeights = WinogradWeights {
        first: [[0; 64]; 4],
        second: [[0; 64]; 4],
        minus: [0; TILE_ROWS],
        scale: [0.0; TILE_ROWS],
        min: [0.0; TILE_ROWS],
    };
}

/// Blocks whose sums stay in registers. What lies between them and the first-level cache takes as long as half a block.
const BLOCKS: usize = 8;

/// Tiles of rows that meet a tile of tokens while it is in the first-level cache.
const TILES: usize = 2;

/// Whether a format's codes are small enough, and a block has one scale.
const fn takes<F: QuantizedTileFormat>() -> bool {
    F::BITS <= WinogradActivations::BITS
        && F::HALVES == 1
        && (F::OFFSET == 0 || F::OFFSET == WinogradActivations::OFFSET)
}

/// Four numbers of each half of the token at `$x`, times 16 rows. In a sum of unsigned bytes nothing is carried from one to the
/// next, so that words are added, which may come from memory to all rows at once.
macro_rules! four {
    ($i:literal, $g:literal, $x:literal) => {
        concat!(
            "vpbroadcastd {x0}, dword ptr [{x} + 16 + 4 * ",
            $g,
            " + ",
            $x,
            "]\n",
            "vpaddd {x1}, {p",
            $g,
            "}, dword ptr [{x} + 32 + 4 * ",
            $g,
            " + ",
            $x,
            "]{{1to16}}\n",
            "vpaddb {x0}, {q",
            $g,
            "}, {x0}\n",
            "vpdpbusd {",
            $i,
            "}, {x1}, {x0}\n"
        )
    };
}

/// What a token's integer sums begin with.
macro_rules! begin {
    ($i:literal, $x:literal) => {
        concat!(
            "vpbroadcastd {",
            $i,
            "}, dword ptr [{x} + {minus_token} + ",
            $x,
            "]\n",
            "vpaddd {",
            $i,
            "}, {",
            $i,
            "}, zmmword ptr [{minus}]\n"
        )
    };
}

/// Two tokens: their integer sums go to `$i` and `$j`, and between their dot products what is left of the two before them,
/// each given as number, sums and place.
macro_rules! two {
    ($i:literal, $j:literal, $x:literal, $y:literal, $scales:ident, $mins:ident, $k:tt, $l:tt) => {
        concat!(
            begin!($i, $x),
            begin!($j, $y),
            four!($i, 0, $x),
            $scales!(convert $k),
            four!($j, 0, $y),
            $scales!(convert $l),
            four!($i, 1, $x),
            $scales!(add $k),
            four!($j, 1, $y),
            $scales!(add $l),
            four!($i, 2, $x),
            $mins!($k),
            four!($j, 2, $y),
            $mins!($l),
            four!($i, 3, $x),
            four!($j, 3, $y),
        )
    };
}

/// `acc += dot * (scale * activation scale)`.
macro_rules! scales {
    (convert [$n:literal $i:literal $x:literal]) => {
        concat!("vcvtdq2ps {", $i, "}, {", $i, "}\n")
    };
    (add [$n:literal $i:literal $x:literal]) => {
        concat!(
            "vmulps {x0}, {s0}, dword ptr [{x} + 8 + ",
            $x,
            "]{{1to16}}\n",
            "vfmadd231ps {a",
            $n,
            "}, {",
            $i,
            "}, {x0}\n"
        )
    };
}

/// `acc += min * activation sum`.
macro_rules! mins {
    ([$n:literal $i:literal $x:literal]) => {
        concat!("vfmadd231ps {a", $n, "}, {m0}, dword ptr [{x} + 12 + ", $x, "]{{1to16}}\n")
    };
}

/// Nothing: in front of the first tokens, and of formats without mins.
macro_rules! nothing {
    ($($any:tt)*) => {
        ""
    };
}

/// Adds a block to the sums of a tile of tokens.
macro_rules! tokens {
    ($F:ident, $sums:ident, $block:expr, $x:expr, $mins:ident, [$($with:tt)*]) => {{
        let (block, p, q) = ($block, &$block.first, &$block.second);
        let (x0, x1, i, j, k, l): (__m512i, __m512i, __m512i, __m512i, __m512i, __m512i);
        asm!(
            two!("i", "j", 0, 48, nothing, nothing, [], []),
            two!("k", "l", 96, 144, scales, $mins, [0 "i" 0], [1 "j" 48]),
            two!("i", "j", 192, 240, scales, $mins, [2 "k" 96], [3 "l" 144]),
            two!("k", "l", 288, 336, scales, $mins, [4 "i" 192], [5 "j" 240]),
            two!("i", "j", 384, 432, scales, $mins, [6 "k" 288], [7 "l" 336]),
            two!("k", "l", 480, 528, scales, $mins, [8 "i" 384], [9 "j" 432]),
            two!("i", "j", 576, 624, scales, $mins, [10 "k" 480], [11 "l" 528]),
            two!("k", "l", 672, 720, scales, $mins, [12 "i" 576], [13 "j" 624]),
            scales!(convert [14 "k" 672]),
            scales!(convert [15 "l" 720]),
            scales!(add [14 "k" 672]),
            scales!(add [15 "l" 720]),
            $mins!([14 "k" 672]),
            $mins!([15 "l" 720]),
            x = in(reg) $x, minus = in(reg) block.minus.as_ptr(), minus_token = const minus_token::<$F>(),
            x0 = out(zmm_reg) x0, x1 = out(zmm_reg) x1, i = out(zmm_reg) i, j = out(zmm_reg) j, k = out(zmm_reg) k,
            l = out(zmm_reg) l, s0 = in(zmm_reg) _mm512_load_ps(block.scale.as_ptr()),
            p0 = in(zmm_reg) _mm512_load_si512(p[0].as_ptr().cast()), p1 = in(zmm_reg) _mm512_load_si512(p[1].as_ptr().cast()),
            p2 = in(zmm_reg) _mm512_load_si512(p[2].as_ptr().cast()), p3 = in(zmm_reg) _mm512_load_si512(p[3].as_ptr().cast()),
            q0 = in(zmm_reg) _mm512_load_si512(q[0].as_ptr().cast()), q1 = in(zmm_reg) _mm512_load_si512(q[1].as_ptr().cast()),
            q2 = in(zmm_reg) _mm512_load_si512(q[2].as_ptr().cast()), q3 = in(zmm_reg) _mm512_load_si512(q[3].as_ptr().cast()),
            a0 = inout(zmm_reg) $sums[0], a1 = inout(zmm_reg) $sums[1], a2 = inout(zmm_reg) $sums[2],
            a3 = inout(zmm_reg) $sums[3], a4 = inout(zmm_reg) $sums[4], a5 = inout(zmm_reg) $sums[5],
            a6 = inout(zmm_reg) $sums[6], a7 = inout(zmm_reg) $sums[7], a8 = inout(zmm_reg) $sums[8],
            a9 = inout(zmm_reg) $sums[9], a10 = inout(zmm_reg) $sums[10], a11 = inout(zmm_reg) $sums[11],
            a12 = inout(zmm_reg) $sums[12], a13 = inout(zmm_reg) $sums[13], a14 = inout(zmm_reg) $sums[14],
            a15 = inout(zmm_reg) $sums[15], $($with)*
            options(nostack, readonly, preserves_flags));
        let _ = (x0, x1, i, j, k, l);
    }};
}

/// Unpacks a unit of a tile of rows.
///
/// # Safety
/// A whole unit at `w`, its scales in `scales`; AVX-512 with VNNI.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
unsafe fn unpack<F: QuantizedTileFormat>(
    ahead: usize,
    w: *const u8,
    scales: &UnitScales,
    into: &mut [WinogradWeights],
) {
    let (more, less) =
        (_mm512_set1_epi8(WinogradActivations::MORE as i8), _mm512_set1_epi8(-WinogradActivations::LESS as i8));
    for (b, block) in into[..F::UNIT_BLOCKS].iter_mut().enumerate() {
        fetch::<Avx512, F>(ahead, w, b);
        let mut products = _mm512_setzero_si512();
        // SAFETY: `unpack` is promised the unit and its scales; half a block has 4 vectors of codes; `linear` has
        // checked panels and tokens, `Dispatch::new` the level.
        unsafe {
            unroll!(P in [0 1] {
                let [p0, p1] = F::pair::<Avx512>(w, b, P);
                let [q0, q1] = F::pair::<Avx512>(w, b, P + 2);
                let (q0, q1) = (_mm512_add_epi8(q0, less), _mm512_add_epi8(q1, less));
                products = _mm512_dpbusd_epi32(products, _mm512_add_epi8(p0, more), q0);
                products = _mm512_dpbusd_epi32(products, _mm512_add_epi8(p1, more), q1);
                _mm512_store_si512(block.first[2 * P].as_mut_ptr().cast(), p0);
                _mm512_store_si512(block.first[2 * P + 1].as_mut_ptr().cast(), p1);
                _mm512_store_si512(block.second[2 * P].as_mut_ptr().cast(), q0);
                _mm512_store_si512(block.second[2 * P + 1].as_mut_ptr().cast(), q1);
            });
            _mm512_store_si512(block.minus.as_mut_ptr().cast(), _mm512_sub_epi32(_mm512_setzero_si512(), products));
            block.scale = *scales.scale(b);
            if F::MINS {
                block.min = *scales.min(b);
            }
        }
    }
}

/// Adds blocks of a tile of rows, the first being block `at` of all, to the sums of a tile of tokens.
///
/// # Safety
/// As for [`some`]; the blocks exist.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
#[inline]
unsafe fn add<F: QuantizedTileFormat>(
    blocks: &[WinogradWeights],
    p: &PanelPass,
    at: usize,
    sums: &mut [__m512; TOKEN_TILE],
) {
    let mut acc = *sums; // a copy stays in registers
    for (b, block) in blocks.iter().enumerate() {
        // SAFETY: what `add` is promised; `linear` refuses activations without pairs.
        unsafe {
            let x = p.pairs.wrapping_add((at + b) * p.stride);
            if F::MINS {
                let m0 = _mm512_load_ps(block.min.as_ptr());
                tokens!(F, acc, block, x, mins, [m0 = in(zmm_reg) m0,]);
            } else {
                tokens!(F, acc, block, x, nothing, []);
            }
        }
    }
    *sums = acc;
}

/// One pass for each of some full tiles of tokens that share the panel.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`], for each of `passes`; there are at most `T`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn together<F: QuantizedTileFormat, const T: usize>(passes: &[PanelPass]) {
    const { assert!(BLOCKS.is_multiple_of(F::UNIT_BLOCKS)) };
    let mut scales = [const { UnitScales::new() }; PANEL_TILES];
    let mut blocks = [[WinogradWeights::EMPTY; BLOCKS]; TILES];
    // SAFETY: units, tiles and blocks stay in the panel, tokens in their tiles; prefetches may leave it.
    unsafe {
        let mut sums = [[[_mm512_setzero_ps(); TOKEN_TILE]; PANEL_TILES]; T];
        let (sums, mut marked) = (&mut sums[..passes.len()], OutlierBlocks::new(passes));
        let (mut w, mut u) = (passes[0].w, 0);
        while u < passes[0].units {
            // A unit's outliers come before the next unit.
            let mut units = 1;
            let most = (BLOCKS / F::UNIT_BLOCKS).min(passes[0].units - u);
            while units < most && marked.blocks::<F>(u + units - 1) == 0 {
                units += 1;
            }
            marked.fetch::<F>(u + units - 1);
            for (pair, scales) in scales.as_chunks_mut::<TILES>().0.iter_mut().enumerate() {
                for (i, (scales, blocks)) in scales.iter_mut().zip(&mut blocks).enumerate() {
                    for (unit, blocks) in blocks.chunks_exact_mut(F::UNIT_BLOCKS).enumerate().take(units) {
                        let w = w.add((unit * PANEL_TILES + pair * TILES + i) * F::UNIT_BYTES);
                        F::scales::<Avx512>(w, scales);
                        unpack::<F>(passes[0].ahead, w, scales, blocks);
                    }
                }
                for (p, sums) in passes.iter().zip(&mut *sums) {
                    for (i, blocks) in blocks.iter().enumerate() {
                        let sums = &mut sums[pair * TILES + i];
                        add::<F>(&blocks[..units * F::UNIT_BLOCKS], p, u * F::UNIT_BLOCKS, sums);
                    }
                }
            }
            u += units;
            let last = w.add((units - 1) * PANEL_TILES * F::UNIT_BYTES);
            if marked.blocks::<F>(u - 1) != 0 {
                add_outliers::<F, TOKEN_TILE>(&mut marked, u - 1, last, &scales, sums);
            }
            w = last.add(PANEL_TILES * F::UNIT_BYTES);
        }
        finish(passes, sums);
    }
}

/// The kernel for a format whose codes are small enough and whose blocks have one scale.
pub(super) fn kernel<F: QuantizedTileFormat>() -> Option<PassesFn> {
    if const { takes::<F>() } { Some(some::<F, MOST_TOGETHER>) } else { None }
}

/// [`together`] for any number of full tiles of tokens up to `T`: one alone needs less room.
///
/// # Safety
/// As for that.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn some<F: QuantizedTileFormat, const T: usize>(passes: &[PanelPass]) {
    // SAFETY: what `some` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        match passes.len() {
            1 => together::<F, 1>(passes),
            _ => together::<F, T>(passes),
        }
    }
}
