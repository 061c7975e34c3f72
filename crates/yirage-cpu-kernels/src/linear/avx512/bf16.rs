//! BF16 weights times bf16 activations by `vdpbf16ps`: pairs of k of 16 rows at once.
//!
//! Up to 8 tokens: unit by unit over the four tiles, one memory stream. 16 tokens: Zen 5 starts two products in a cycle
//! and loads twice, so a pair of a token serves two tiles of rows. The registers hold the sums of two tiles for 8 tokens;
//! what is left over is gone through again, piece by piece, while the second-level cache holds the weights.

use crate::activation::TOKEN_TILE;
use crate::linear::pass::PanelPass;
use crate::linear::unroll::unroll;
use crate::pack::{BLOCK, PANEL_TILES, PackedBf16, TileFormat};
use crate::simd::{Avx512, ByteLanes as _};
use std::arch::x86_64::*;
use std::slice;

/// Bytes of 32 numbers of a token.
const TOKEN_BYTES: usize = 2 * BLOCK;
/// Bytes of the four tiles' units for the same 32 numbers.
const STEP: usize = PANEL_TILES * PackedBf16::UNIT_BYTES;
/// Units of a piece.
const PIECE: usize = 32;
/// Tokens whose sums are in registers.
const HALF: usize = TOKEN_TILE / 2;
/// First tile of rows and first token of the four parts of a panel and a tile of tokens.
const PARTS: [(usize, usize); 4] = [(0, 0), (0, HALF), (2, 0), (2, HALF)];

/// Bytes of a tile of tokens that a part asks for with each unit.
const TOKENS_SHARE: usize = TOKEN_TILE * TOKEN_BYTES / PARTS.len();
/// Pairs of numbers from one line of them to the next.
const LINE_EVERY: usize = BLOCK / 2 * 64 / TOKENS_SHARE;

/// The sums of a part.
type Bf16Accumulators = [[__m512; HALF]; 2];

/// 32 bf16 as operands of products.
#[target_feature(enable = "avx512f")]
#[inline]
fn pairs(v: __m512i) -> __m512bh {
    // SAFETY: both are 512 bits.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(v) }
}

/// The pairs of 16 rows.
///
/// # Safety
/// 64 bytes at `w`; AVX-512.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn rows(w: *const u8) -> __m512bh {
    // SAFETY: what `rows` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { pairs(Avx512::load_bytes(w)) }
}

/// A token's pair in all rows.
///
/// # Safety
/// 4 bytes at `x`; AVX-512.
#[target_feature(enable = "avx512f")]
#[inline]
unsafe fn token(x: *const u8) -> __m512bh {
    // SAFETY: what `token` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { pairs(_mm512_set1_epi32(x.cast::<i32>().read_unaligned())) }
}

/// One pass for `N` tokens, at most 8.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn few<const N: usize>(p: &PanelPass) {
    // SAFETY: units and tiles stay in the panel, tokens in the tile; prefetches may leave it.
    unsafe {
        let mut sums = [[_mm512_setzero_ps(); N]; PANEL_TILES];
        let mut w = p.w;
        for u in 0..p.units {
            let x = p.x.add(u * p.stride * TOKEN_BYTES);
            for tile in &mut sums {
                let mut acc = *tile;
                for i in 0..BLOCK / 2 {
                    if p.ahead > 0 {
                        Avx512::fetch(w.wrapping_add(p.ahead + 64 * i));
                    }
                    let v = rows(w.add(64 * i));
                    unroll!(I < N {
                        acc[I] = _mm512_dpbf16_ps(acc[I], v, token(x.add(I * TOKEN_BYTES + 4 * i)));
                    });
                }
                *tile = acc;
                w = w.add(PackedBf16::UNIT_BYTES);
            }
        }
        for (i, tile) in sums.iter().enumerate() {
            unroll!(I < N { p.put::<Avx512>(i, I, tile[I]); });
        }
    }
}

/// One pass for a full tile of tokens.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn full(p: &PanelPass) {
    // SAFETY: what `full` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { together::<1>(slice::from_ref(p)) }
}

/// One pass for each of some full tiles of tokens that share the panel.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`], for each of `passes`; there are at most `T`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn together<const T: usize>(passes: &[PanelPass]) {
    // SAFETY: units and tiles stay in the panel, tokens in their tiles; prefetches may leave it.
    unsafe {
        let mut sums = [[[[_mm512_setzero_ps(); HALF]; 2]; PARTS.len()]; T];
        for begin in (0..passes[0].units).step_by(PIECE) {
            let units = PIECE.min(passes[0].units - begin);
            for (t, (p, sums)) in passes.iter().zip(&mut sums).enumerate() {
                let w = p.w.add(begin * STEP);
                for (i, (&(tile, first), sums)) in PARTS.iter().zip(sums).enumerate() {
                    let x = p.x.add((begin * p.stride + first) * TOKEN_BYTES);
                    // the first tokens that meet a piece ask for the next, a quarter in each part
                    let ahead = w.wrapping_add(PIECE * STEP + i * units * PackedBf16::UNIT_BYTES);
                    // and all for their own numbers that meet it: those of long rows do not stay in the second-level cache
                    let next = (begin + PIECE) * p.stride * TOKEN_BYTES;
                    let numbers = p.x.wrapping_add(next + i * units * TOKENS_SHARE);
                    let w = w.add(tile * PackedBf16::UNIT_BYTES);
                    match t {
                        0 => part::<true>(w, x, p.stride, units, [ahead, numbers], sums),
                        _ => part::<false>(w, x, p.stride, units, [ahead, numbers], sums),
                    }
                }
            }
        }
        for (p, sums) in passes.iter().zip(&sums) {
            for (&(tile, first), sums) in PARTS.iter().zip(sums) {
                for (i, tokens) in sums.iter().enumerate() {
                    unroll!(I in [0 1 2 3 4 5 6 7] { p.put::<Avx512>(tile + i, first + I, tokens[I]); });
                }
            }
        }
    }
}

/// Adds `units` units of two tiles of rows for 8 tokens. Asks for its share of tokens at `numbers`, and for as many units
/// at `ahead` if it should.
///
/// # Safety
/// The units at `w` and the tokens' numbers at `x`, tiles of `stride` tokens; the CPU has the instructions.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
#[inline]
unsafe fn part<const FETCH: bool>(
    w: *const u8,
    x: *const u8,
    stride: usize,
    units: usize,
    [ahead, numbers]: [*const u8; 2],
    sums: &mut Bf16Accumulators,
) {
    let [mut a, mut b] = *sums; // copies stay in registers
    for u in 0..units {
        for i in 0..BLOCK / 2 {
            // SAFETY: what `part` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
            unsafe {
                if FETCH {
                    Avx512::fetch(ahead.wrapping_add(u * PackedBf16::UNIT_BYTES + 64 * i));
                }
                if i.is_multiple_of(LINE_EVERY) {
                    Avx512::fetch(numbers.wrapping_add(u * TOKENS_SHARE + i / LINE_EVERY * 64));
                }
                let w = w.add(u * STEP + 64 * i);
                let x = x.add(u * stride * TOKEN_BYTES + 4 * i);
                let (v, below) = (rows(w), rows(w.add(PackedBf16::UNIT_BYTES)));
                unroll!(I in [0 1 2 3 4 5 6 7] {
                    let x = token(x.add(I * TOKEN_BYTES));
                    a[I] = _mm512_dpbf16_ps(a[I], v, x);
                    b[I] = _mm512_dpbf16_ps(b[I], below, x);
                });
            }
        }
    }
    *sums = [a, b];
}
