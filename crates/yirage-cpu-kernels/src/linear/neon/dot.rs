//! The instructions that products are made of, in the two shapes that AArch64 has: a word of each of four rows times
//! one word of a token, and two words of each of two rows times two words of each of two tokens. A word is four 8-bit
//! or two bf16 numbers.
//!
//! Assembly, since the intrinsics are not stable. It is pure, so the compiler places it as it would an intrinsic. The
//! functions have to be inlined into one that enables the extension; the assembler rejects them anywhere else.

use crate::linear::pass::PanelPass;
use crate::linear::unroll::unroll;
use crate::simd::Neon;
use std::arch::aarch64::*;
use std::arch::asm;

/// A word of each of four rows times a word of one token.
pub(crate) trait WordDotProduct {
    /// Sums of four rows.
    type Sums: Copy;
    /// Whether 8-bit codes are taken as signed, so that an offset of 128 has to be taken from them first.
    const SIGNED: bool = false;
    /// `acc[r] + w[r] . x[WORD]`.
    ///
    /// # Safety
    /// The CPU has the instruction.
    unsafe fn dot<const WORD: usize>(acc: Self::Sums, w: uint8x16_t, x: uint8x16_t) -> Self::Sums;
}

/// Two words of each of two rows times two words of each of two tokens.
pub(crate) trait MatrixDotProduct {
    /// Sums `[row][token]`.
    type Sums: Copy;
    /// `acc[r][t] + w[r] . x[t]`.
    ///
    /// # Safety
    /// The CPU has the instruction.
    unsafe fn mul(acc: Self::Sums, w: uint8x16_t, x: uint8x16_t) -> Self::Sums;
}

macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $sums:ty, $signed:literal, $op:literal, $w:literal, $x:literal) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl WordDotProduct for $name {
            type Sums = $sums;
            const SIGNED: bool = $signed;

            #[inline(always)]
            unsafe fn dot<const WORD: usize>(mut acc: $sums, w: uint8x16_t, x: uint8x16_t) -> $sums {
                // SAFETY: registers only, and `WordDotProduct::dot` is promised the instruction; `linear` has checked
                // panels and tokens, `Dispatch::new` the level.
                unsafe {
                    asm!(concat!($op, " {acc:v}.4s, {w:v}.", $w, ", {x:v}.", $x, "[{word}]"), acc = inout(vreg) acc,
                        w = in(vreg) w, x = in(vreg) x, word = const WORD,
                        options(pure, nomem, nostack, preserves_flags));
                }
                acc
            }
        }
    };
}

macro_rules! squares {
    ($(#[$doc:meta])* $name:ident, $sums:ty, $op:literal, $numbers:literal) => {
        $(#[$doc])*
        pub(crate) struct $name;

        impl MatrixDotProduct for $name {
            type Sums = $sums;

            #[inline(always)]
            unsafe fn mul(mut acc: $sums, w: uint8x16_t, x: uint8x16_t) -> $sums {
                // SAFETY: registers only, and `MatrixDotProduct::mul` is promised the instruction; `linear` has
                // checked panels and tokens, `Dispatch::new` the level.
                unsafe {
                    asm!(concat!($op, " {acc:v}.4s, {w:v}.", $numbers, ", {x:v}.", $numbers), acc = inout(vreg) acc,
                        w = in(vreg) w, x = in(vreg) x, options(pure, nomem, nostack, preserves_flags));
                }
                acc
            }
        }
    };
}

words!(
    /// Signed codes times signed activations (dot-product extension).
    Sdot, int32x4_t, true, "sdot", "16b", "4b"
);
words!(
    /// Unsigned codes times signed activations (i8mm).
    Usdot, int32x4_t, false, "usdot", "16b", "4b"
);
words!(
    /// Pairs of bf16 (bf16).
    Bfdot, float32x4_t, false, "bfdot", "8h", "2h"
);
squares!(
    /// Unsigned codes times signed activations (i8mm).
    Usmmla, int32x4_t, "usmmla", "16b"
);
squares!(
    /// bf16 (bf16): the lower pair as [`Bfdot`] adds it, then the upper.
    Bfmmla, float32x4_t, "bfmmla", "8h"
);

/// The numbers of a tile's rows in two groups that follow each other along k, as [`MatrixDotProduct`] take them: eight registers
/// of two rows each.
///
#[inline(always)]
pub(super) fn pair_rows(a: [uint8x16_t; 4], b: [uint8x16_t; 4]) -> [uint8x16_t; 8] {
    let mut out = [a[0]; 8];
    for i in 0..4 {
        // SAFETY: every AArch64 processor has these instructions.
        unsafe {
            let (a, b) = (vreinterpretq_u32_u8(a[i]), vreinterpretq_u32_u8(b[i]));
            out[2 * i] = vreinterpretq_u8_u32(vzip1q_u32(a, b));
            out[2 * i + 1] = vreinterpretq_u8_u32(vzip2q_u32(a, b));
        }
    }
    out
}

/// Adds 16 bytes of each of `T` tokens, `step` bytes apart, times the four groups `w` of 16 rows.
///
/// # Safety
/// The tokens' bytes are readable; the instruction of `D`.
#[inline(always)]
pub(super) unsafe fn add_words<D: WordDotProduct, const T: usize>(
    acc: &mut [[D::Sums; 4]; T],
    w: &[[uint8x16_t; 4]; 4],
    x: *const u8,
    step: usize,
) {
    // SAFETY: what `add_words` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        let mut tokens = [vdupq_n_u8(0); T];
        unroll!(I < T { tokens[I] = vld1q_u8(x.add(I * step)); });
        unroll!(G in [0 1 2 3] {
            unroll!(I < T {
                unroll!(R in [0 1 2 3] { acc[I][R] = D::dot::<G>(acc[I][R], w[G][R], tokens[I]); });
            });
        });
    }
}

/// Adds 16 bytes of each of four tokens, `step` bytes apart, times the two pairs of groups `w` of 16 rows. The sums are
/// those of the tokens 0 and 1, and 2 and 3.
///
/// # Safety
/// The tokens' bytes are readable; the instruction of `S`.
#[inline(always)]
pub(super) unsafe fn add_squares<S: MatrixDotProduct>(
    acc: &mut [[S::Sums; 8]; 2],
    w: &[[uint8x16_t; 8]; 2],
    x: *const u8,
    step: usize,
) {
    // SAFETY: what `add_squares` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        let token = |t: usize| vreinterpretq_u64_u8(vld1q_u8(x.add(t * step)));
        let (a, b, c, d) = (token(0), token(1), token(2), token(3));
        let tokens = [[vzip1q_u64(a, b), vzip1q_u64(c, d)], [vzip2q_u64(a, b), vzip2q_u64(c, d)]];
        unroll!(G in [0 1] {
            unroll!(R in [0 1 2 3 4 5 6 7] {
                unroll!(P in [0 1] {
                    acc[P][R] = S::mul(acc[P][R], w[G][R], vreinterpretq_u8_u64(tokens[G][P]));
                });
            });
        });
    }
}

/// Writes the sums of two tokens as [`MatrixDotProduct`] leaves them.
///
/// # Safety
/// As for [`PanelPass::put`].
#[inline(always)]
pub(super) unsafe fn put_squares(p: &PanelPass, tile: usize, token: usize, sums: &[float32x4_t; 8]) {
    let mut rows = [[sums[0]; 4]; 2];
    // SAFETY: what `put_squares` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        for i in 0..4 {
            rows[0][i] = vuzp1q_f32(sums[2 * i], sums[2 * i + 1]);
            rows[1][i] = vuzp2q_f32(sums[2 * i], sums[2 * i + 1]);
        }
        p.put::<Neon>(tile, token, rows[0]);
        p.put::<Neon>(tile, token + 1, rows[1]);
    }
}
