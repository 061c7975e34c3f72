//! int8 activations times the codes of a format: one loop for both shapes of instructions.

use super::dot::{MatrixDotProduct, WordDotProduct, add_squares, add_words, pair_rows, put_squares};
use crate::activation::{Meta, TOKEN_TILE};
use crate::linear::outliers::{self, OutlierAccumulator, OutlierBlocks};
use crate::linear::pass::PanelPass;
use crate::linear::unroll::unroll;
use crate::pack::{BLOCK, PANEL_TILES, QuantizedTileFormat, UnitScales};
use crate::simd::{ByteLanes as _, Neon};
use std::arch::aarch64::*;
use std::marker::PhantomData;

/// How a block is multiplied: the sums of 16 rows and some tokens are `T` times `R` registers.
///
/// # Safety
/// The unsafe methods need the instruction, and pointers as their description says.
pub(super) trait BlockDotProduct<const R: usize, const T: usize> {
    /// Tokens of a chunk.
    const TOKENS: usize;
    /// Whether 8-bit codes are taken as signed.
    const SIGNED: bool;
    /// The codes of half a block.
    type Half: Copy;
    /// Half a block from its four groups.
    unsafe fn half(groups: [[uint8x16_t; 4]; 4]) -> Self::Half;
    /// Adds half a block; the 16 activations of the chunk's first token are at `x`.
    unsafe fn add(sums: &mut [[int32x4_t; R]; T], w: &Self::Half, x: *const u8);
    /// 16 numbers, one a row, for the lanes of the sums.
    unsafe fn rows(p: &[f32; 16]) -> [float32x4_t; R];
    /// The numbers of the tokens of `sums[t]`, the chunk's first being at `m`.
    unsafe fn tokens(m: *const Meta, t: usize) -> Tokens;
    /// Adds `w`, a number a row, times `x` to the sums of token `t` of the chunk.
    unsafe fn add_outlier(sums: &mut [[float32x4_t; R]; T], t: usize, w: [float32x4_t; 4], x: f32);
    /// Writes the chunk's results.
    unsafe fn put(p: &PanelPass, tile: usize, first: usize, sums: &[[float32x4_t; R]; T]);
}

/// What [`Meta`] says of the tokens of a register of sums, lane by lane.
pub(super) struct Tokens {
    scale: float32x4_t,
    scaled_sum: float32x4_t,
    minus_sum: int32x4_t,
    minus_first: int32x4_t,
}

/// A register of sums holds four rows of one token.
pub(super) struct ByWords<D>(PhantomData<D>);

impl<D: WordDotProduct<Sums = int32x4_t>, const T: usize> BlockDotProduct<4, T> for ByWords<D> {
    const TOKENS: usize = T;
    const SIGNED: bool = D::SIGNED;
    type Half = [[uint8x16_t; 4]; 4];

    #[inline(always)]
    unsafe fn half(groups: [[uint8x16_t; 4]; 4]) -> Self::Half {
        groups
    }
    #[inline(always)]
    unsafe fn add(sums: &mut [[int32x4_t; 4]; T], w: &Self::Half, x: *const u8) {
        // SAFETY: what `BlockDotProduct::add` is promised; `linear` has checked panels and tokens, `Dispatch::new` the
        // level.
        unsafe { add_words::<D, T>(sums, w, x, BLOCK) }
    }
    #[inline(always)]
    unsafe fn rows(p: &[f32; 16]) -> [float32x4_t; 4] {
        let p = p.as_ptr();
        // SAFETY: 16 numbers.
        unsafe { [vld1q_f32(p), vld1q_f32(p.add(4)), vld1q_f32(p.add(8)), vld1q_f32(p.add(12))] }
    }
    #[inline(always)]
    unsafe fn tokens(m: *const Meta, t: usize) -> Tokens {
        // SAFETY: what `BlockDotProduct::tokens` is promised; `linear` has checked panels and tokens, `Dispatch::new`
        // the level.
        unsafe {
            let m = m.add(t).read_unaligned();
            Tokens {
                scale: vdupq_n_f32(m.scale),
                scaled_sum: vdupq_n_f32(m.scaled_sum),
                minus_sum: vdupq_n_s32(m.minus_sum),
                minus_first: vdupq_n_s32(m.minus_first),
            }
        }
    }
    #[inline(always)]
    unsafe fn add_outlier(sums: &mut [[float32x4_t; 4]; T], t: usize, w: [float32x4_t; 4], x: f32) {
        // SAFETY: what `BlockDotProduct::add_outlier` is promised; `linear` has checked panels and tokens,
        // `Dispatch::new` the level.
        unsafe {
            unroll!(I in [0 1 2 3] { sums[t][I] = vfmaq_n_f32(sums[t][I], w[I], x); });
        }
    }
    #[inline(always)]
    unsafe fn put(p: &PanelPass, tile: usize, first: usize, sums: &[[float32x4_t; 4]; T]) {
        // SAFETY: what `BlockDotProduct::put` is promised; `linear` has checked panels and tokens, `Dispatch::new` the
        // level.
        unsafe {
            unroll!(I < T { p.put::<Neon>(tile, first + I, sums[I]); });
        }
    }
}

/// A register of sums holds two rows of two tokens: row, row, row + 1, row + 1.
pub(super) struct BySquares<S>(PhantomData<S>);

impl<S: MatrixDotProduct<Sums = int32x4_t>> BlockDotProduct<8, 2> for BySquares<S> {
    const TOKENS: usize = 4;
    const SIGNED: bool = false;
    type Half = [[uint8x16_t; 8]; 2];

    #[inline(always)]
    unsafe fn half([a, b, c, d]: [[uint8x16_t; 4]; 4]) -> Self::Half {
        [pair_rows(a, b), pair_rows(c, d)]
    }
    #[inline(always)]
    unsafe fn add(sums: &mut [[int32x4_t; 8]; 2], w: &Self::Half, x: *const u8) {
        // SAFETY: what `BlockDotProduct::add` is promised; `linear` has checked panels and tokens, `Dispatch::new` the
        // level.
        unsafe { add_squares::<S>(sums, w, x, BLOCK) }
    }
    #[inline(always)]
    unsafe fn rows(p: &[f32; 16]) -> [float32x4_t; 8] {
        let p = p.as_ptr();
        // SAFETY: 16 numbers.
        unsafe {
            let mut out = [vdupq_n_f32(0.0); 8];
            unroll!(I in [0 1 2 3] {
                let four = vld1q_f32(p.add(4 * I));
                out[2 * I] = vzip1q_f32(four, four);
                out[2 * I + 1] = vzip2q_f32(four, four);
            });
            out
        }
    }
    #[inline(always)]
    unsafe fn tokens(m: *const Meta, t: usize) -> Tokens {
        // SAFETY: what `BlockDotProduct::tokens` is promised; a `Meta` is four numbers of 32 bits.
        unsafe {
            let m = m.add(2 * t).cast::<f32>();
            let (a, b) = (vld1q_f32(m), vld1q_f32(m.add(4)));
            let floats = vreinterpretq_f64_f32(vzip1q_f32(a, b));
            let ints = vreinterpretq_s64_f32(vzip2q_f32(a, b));
            Tokens {
                scale: vreinterpretq_f32_f64(vdupq_laneq_f64::<0>(floats)),
                scaled_sum: vreinterpretq_f32_f64(vdupq_laneq_f64::<1>(floats)),
                minus_sum: vreinterpretq_s32_s64(vdupq_laneq_s64::<0>(ints)),
                minus_first: vreinterpretq_s32_s64(vdupq_laneq_s64::<1>(ints)),
            }
        }
    }
    #[inline(always)]
    unsafe fn add_outlier(sums: &mut [[float32x4_t; 8]; 2], t: usize, w: [float32x4_t; 4], x: f32) {
        // SAFETY: what `BlockDotProduct::add_outlier` is promised; `linear` has checked panels and tokens,
        // `Dispatch::new` the level.
        unsafe {
            // every other number is another token's, whose sum must stay what it is, to the bit
            let mine = vld1q_u32([[!0, 0, !0, 0], [0, !0, 0, !0]][t % 2].as_ptr());
            let sums = &mut sums[t / 2];
            unroll!(I in [0 1 2 3] {
                for (sum, w) in sums[2 * I..].iter_mut().zip([vzip1q_f32(w[I], w[I]), vzip2q_f32(w[I], w[I])]) {
                    *sum = vbslq_f32(mine, vfmaq_n_f32(*sum, w, x), *sum);
                }
            });
        }
    }
    #[inline(always)]
    unsafe fn put(p: &PanelPass, tile: usize, first: usize, sums: &[[float32x4_t; 8]; 2]) {
        // SAFETY: what `BlockDotProduct::put` is promised; `linear` has checked panels and tokens, `Dispatch::new` the
        // level.
        unsafe {
            put_squares(p, tile, first, &sums[0]);
            put_squares(p, tile, first + 2, &sums[1]);
        }
    }
}

/// One pass: a block's codes are unpacked once, then used chunk by chunk. `MANY`: the tile has more than one chunk; one
/// alone need not leave the registers.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`]; the instruction of `P`.
#[inline(always)]
pub(super) unsafe fn pass<
    F: QuantizedTileFormat,
    P: BlockDotProduct<R, T>,
    const R: usize,
    const T: usize,
    const MANY: bool,
>(
    p: &PanelPass,
) {
    let mut scales = [const { UnitScales::new() }; PANEL_TILES];
    let chunks = if MANY { p.tokens / P::TOKENS } else { 1 };
    // SAFETY: units, tiles and blocks stay in the panel, tokens in the tile, chunks in the sums.
    unsafe {
        let mut acc = [[[vdupq_n_f32(0.0); 4]; TOKEN_TILE]; PANEL_TILES];
        let mut marked = OutlierBlocks::new(std::slice::from_ref(p));
        let mut unit = p.w;
        for u in 0..p.units {
            let mut w = unit;
            for (tile, scales) in acc.iter_mut().zip(&mut scales) {
                F::scales::<Neon>(w, scales);
                let sums = tile.as_mut_ptr().cast::<[[float32x4_t; R]; T]>();
                for b in 0..F::UNIT_BLOCKS {
                    let codes = unpack::<F, P, R, T>(w, b);
                    let (mut x, mut metas) = p.block(u * F::UNIT_BLOCKS + b);
                    for c in 0..chunks {
                        block::<F, P, R, T>(&codes, x, metas, scales, b, &mut *sums.add(c));
                        x = x.wrapping_add(P::TOKENS * BLOCK);
                        metas = metas.wrapping_add(P::TOKENS);
                    }
                }
                w = w.wrapping_add(F::UNIT_BYTES);
            }
            let sums = &mut Chunks::<P, R, T>(&mut acc, PhantomData);
            outliers::add::<Neon, F>(&mut marked, u, unit, &scales, sums);
            unit = w;
        }
        for (i, tile) in acc.iter().enumerate() {
            let sums = tile.as_ptr().cast::<[[float32x4_t; R]; T]>();
            for c in 0..chunks {
                P::put(p, i, c * P::TOKENS, &*sums.add(c));
            }
        }
    }
}

/// A panel's sums, chunk by chunk.
struct Chunks<'a, P, const R: usize, const T: usize>(
    &'a mut [[[float32x4_t; 4]; TOKEN_TILE]; PANEL_TILES],
    PhantomData<P>,
);

impl<P: BlockDotProduct<R, T>, const R: usize, const T: usize> OutlierAccumulator<Neon> for Chunks<'_, P, R, T> {
    #[inline(always)]
    unsafe fn add(&mut self, tile: usize, token: usize, w: Neon, x: f32) {
        let chunks = self.0[tile].as_mut_ptr().cast::<[[float32x4_t; R]; T]>();
        // SAFETY: what `OutlierAccumulator::add` is promised; chunks hold the sums of their tokens and nothing else;
        // `linear` has checked panels and tokens, `Dispatch::new` the level.
        unsafe { P::add_outlier(&mut *chunks.add(token / P::TOKENS), token % P::TOKENS, w.registers(), x) }
    }
}

/// The codes of a block's two halves.
///
/// # Safety
/// A unit at `w`.
#[inline(always)]
unsafe fn unpack<F: QuantizedTileFormat, P: BlockDotProduct<R, T>, const R: usize, const T: usize>(
    w: *const u8,
    b: usize,
) -> [P::Half; 2] {
    const { assert!(F::BITS <= 7 || F::OFFSET == 128) };
    // SAFETY: what `unpack` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        let mut groups = [[vdupq_n_u8(0); 4]; 8];
        unroll!(I in [0 1 2 3] { [groups[2 * I], groups[2 * I + 1]] = F::pair::<Neon>(w, b, I); });
        if P::SIGNED && F::BITS > 7 {
            unroll!(G in [0 1 2 3 4 5 6 7] {
                unroll!(R in [0 1 2 3] { groups[G][R] = veorq_u8(groups[G][R], vdupq_n_u8(0x80)); });
            });
        }
        let [a, b, c, d, e, f, g, h] = groups;
        [P::half([a, b, c, d]), P::half([e, f, g, h])]
    }
}

/// Start of an integer sum: the offset's share, unless it was taken from the codes.
#[inline(always)]
fn start<F: QuantizedTileFormat>(signed: bool, minus_sum: int32x4_t) -> int32x4_t {
    // SAFETY: every AArch64 processor has these instructions.
    unsafe {
        if F::OFFSET == 0 || signed && F::BITS > 7 {
            vdupq_n_s32(0)
        } else {
            vshlq_s32(minus_sum, vdupq_n_s32(F::OFFSET_SHIFT as i32))
        }
    }
}

/// Adds 32-block `b` of a unit for one chunk.
///
/// # Safety
/// The chunk's activations at `x` and metas at `m`; the instruction of `P`.
#[inline(always)]
unsafe fn block<F: QuantizedTileFormat, P: BlockDotProduct<R, T>, const R: usize, const T: usize>(
    w: &[P::Half; 2],
    x: *const u8,
    m: *const Meta,
    s: &UnitScales,
    b: usize,
    acc: &mut [[float32x4_t; R]; T],
) {
    // SAFETY: what `block` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        let mut dot = [[vdupq_n_s32(0); R]; T];
        if F::HALVES == 1 {
            unroll!(I < T { dot[I] = [start::<F>(P::SIGNED, P::tokens(m, I).minus_sum); R]; });
            P::add(&mut dot, &w[0], x);
            P::add(&mut dot, &w[1], x.add(BLOCK / 2));
            let scale = P::rows(s.scale(b));
            let min = P::rows(if F::MINS { s.min(b) } else { s.scale(b) });
            unroll!(I < T {
                let t = P::tokens(m, I);
                unroll!(K < R {
                    let scale = vmulq_f32(scale[K], t.scale);
                    acc[I][K] = vfmaq_f32(acc[I][K], vcvtq_f32_s32(dot[I][K]), scale);
                    if F::MINS {
                        acc[I][K] = vfmaq_f32(acc[I][K], min[K], t.scaled_sum);
                    }
                });
            });
            return;
        }
        let mut v = [[vdupq_n_f32(0.0); R]; T];
        unroll!(I < T { dot[I] = [start::<F>(P::SIGNED, P::tokens(m, I).minus_first); R]; });
        P::add(&mut dot, &w[0], x);
        let scale = P::rows(s.scale(2 * b));
        unroll!(I < T {
            unroll!(K < R { v[I][K] = vmulq_f32(vcvtq_f32_s32(dot[I][K]), scale[K]); });
        });
        unroll!(I < T { dot[I] = [start::<F>(P::SIGNED, P::tokens(m, I).minus_second()); R]; });
        P::add(&mut dot, &w[1], x.add(BLOCK / 2));
        let scale = P::rows(s.scale(2 * b + 1));
        let mins = if F::MINS { [P::rows(s.min(2 * b)), P::rows(s.min(2 * b + 1))] } else { [scale; 2] };
        unroll!(I < T {
            let t = P::tokens(m, I);
            let sums = [vcvtq_f32_s32(t.minus_first), vcvtq_f32_s32(t.minus_second())];
            unroll!(K < R {
                let mut v = vfmaq_f32(v[I][K], vcvtq_f32_s32(dot[I][K]), scale[K]);
                if F::MINS {
                    v = vfmsq_f32(v, mins[0][K], sums[0]);
                    v = vfmsq_f32(v, mins[1][K], sums[1]);
                }
                acc[I][K] = vfmaq_f32(acc[I][K], v, t.scale);
            });
        });
    }
}

impl Tokens {
    /// Minus the sum of the last 16 codes.
    #[inline(always)]
    fn minus_second(&self) -> int32x4_t {
        // SAFETY: every AArch64 processor has this instruction.
        unsafe { vsubq_s32(self.minus_sum, self.minus_first) }
    }
}
