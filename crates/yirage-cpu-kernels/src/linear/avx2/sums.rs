//! How unsigned codes in 256-bit registers meet signed activations.

use super::Avx2Ints;
use crate::activation::Meta;
use crate::linear::unroll::unroll;
use crate::pack::{BLOCK, QuantizedTileFormat};
use std::arch::asm;
use std::arch::x86_64::*;

/// The instructions by which products of codes are summed.
pub(crate) trait Avx2DotProduct {
    /// Exact sums of codes less their offset times activations, of the k-groups `FROM..TO`, for `T` tokens. The groups are
    /// all eight of a block, or the first or the last four.
    ///
    /// # Safety
    /// `T` tokens of 32 codes at `x` and their metas at `m`; AVX2 and the instructions of the type.
    unsafe fn sums<F: QuantizedTileFormat, const T: usize, const FROM: usize, const TO: usize>(
        w: &[Avx2Ints; 8],
        x: *const u8,
        m: *const Meta,
    ) -> [Avx2Ints; T];
}

/// What the offset takes from the sum of the groups `FROM..TO`, in every row.
///
/// # Safety
/// AVX2.
#[inline(always)]
unsafe fn offset<F: QuantizedTileFormat, const FROM: usize, const TO: usize>(m: &Meta) -> __m256i {
    let minus_sum = match const { (FROM, TO) } {
        (0, 8) => m.minus_sum,
        (0, 4) => m.minus_first,
        _ => m.minus_sum - m.minus_first,
    };
    // SAFETY: what `offset` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { _mm256_sll_epi32(_mm256_set1_epi32(minus_sum), _mm_cvtsi32_si128(F::OFFSET_SHIFT as i32)) }
}

/// Four codes of a token in every row.
///
/// # Safety
/// 32 codes of a token and of those before it at `x`; AVX2.
#[inline(always)]
unsafe fn word(x: *const u8, token: usize, group: usize) -> __m256i {
    // SAFETY: what `word` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { _mm256_set1_epi32(x.add(token * BLOCK + 4 * group).cast::<i32>().read_unaligned()) }
}

/// Without a dot-product instruction: through `vpmaddubsw`, whose 16-bit sums must not saturate. Codes of 4 bits or less
/// allow all 8 groups of a block before widening (15 * 127 * 2 * 8 = 30480), 5 bits 4 groups (31496), 6 bits 2 groups
/// (32004). 8-bit codes are made signed, which takes their offset of 128 away, and their sign is moved to the activations
/// (128 * 127 * 2 = 32512), widened every group.
pub(crate) struct Widened;

/// k-groups whose 16-bit sums fit before they must be widened.
pub(crate) const fn groups_before_widening(bits: u32) -> usize {
    match bits {
        0..=4 => 8,
        5 => 4,
        6 => 2,
        _ => 1,
    }
}

impl Avx2DotProduct for Widened {
    #[inline(always)]
    unsafe fn sums<F: QuantizedTileFormat, const T: usize, const FROM: usize, const TO: usize>(
        w: &[Avx2Ints; 8],
        x: *const u8,
        m: *const Meta,
    ) -> [Avx2Ints; T] {
        const { assert!(F::BITS <= 6 || F::OFFSET == 128) };
        // SAFETY: what `Avx2DotProduct::sums` is promised; `linear` has checked panels and tokens, `Dispatch::new` the
        // level.
        unsafe {
            if F::BITS > 6 {
                return signed::<T, FROM, TO>(w, x);
            }
            let mut sums = widened::<F, T, FROM, TO>(w, x);
            if F::OFFSET != 0 {
                unroll!(I < T {
                    let offset = offset::<F, FROM, TO>(&*m.add(I));
                    sums[I] = [_mm256_add_epi32(sums[I][0], offset), _mm256_add_epi32(sums[I][1], offset)];
                });
            }
            sums
        }
    }
}

/// Sums of codes of up to 6 bits.
///
/// # Safety
/// As for [`Avx2DotProduct::sums`].
#[inline(always)]
unsafe fn widened<F: QuantizedTileFormat, const T: usize, const FROM: usize, const TO: usize>(
    w: &[Avx2Ints; 8],
    x: *const u8,
) -> [Avx2Ints; T] {
    // SAFETY: what `widened` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        let (every, ones) = (groups_before_widening(F::BITS), _mm256_set1_epi16(1));
        let mut total = [[_mm256_setzero_si256(); 2]; T];
        let mut part = [[_mm256_setzero_si256(); 2]; T];
        unroll!(G in [0 1 2 3 4 5 6 7] {
            if (FROM..TO).contains(&G) {
                unroll!(I < T {
                    let a = word(x, I, G);
                    unroll!(H in [0 1] {
                        let products = _mm256_maddubs_epi16(w[G][H], a);
                        part[I][H] = if (G - FROM).is_multiple_of(every) {
                            products
                        } else {
                            _mm256_add_epi16(part[I][H], products)
                        };
                        if (G - FROM) % every == every - 1 || G == TO - 1 {
                            let wide = _mm256_madd_epi16(part[I][H], ones);
                            total[I][H] = if G - FROM < every { wide } else { _mm256_add_epi32(total[I][H], wide) };
                        }
                    });
                });
            }
        });
        total
    }
}

/// Sums of codes of 8 bits less 128.
///
/// # Safety
/// As for [`Avx2DotProduct::sums`].
#[inline(always)]
unsafe fn signed<const T: usize, const FROM: usize, const TO: usize>(w: &[Avx2Ints; 8], x: *const u8) -> [Avx2Ints; T] {
    // SAFETY: what `signed` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        let (flip, ones) = (_mm256_set1_epi8(-128), _mm256_set1_epi16(1));
        let mut total = [[_mm256_setzero_si256(); 2]; T];
        unroll!(G in [0 1 2 3 4 5 6 7] {
            if (FROM..TO).contains(&G) {
                let signed = [_mm256_xor_si256(w[G][0], flip), _mm256_xor_si256(w[G][1], flip)];
                let size = [_mm256_abs_epi8(signed[0]), _mm256_abs_epi8(signed[1])];
                unroll!(I < T {
                    let a = word(x, I, G);
                    unroll!(H in [0 1] {
                        let products = _mm256_maddubs_epi16(size[H], _mm256_sign_epi8(a, signed[H]));
                        total[I][H] = _mm256_add_epi32(total[I][H], _mm256_madd_epi16(products, ones));
                    });
                });
            }
        });
        total
    }
}

/// With `vpdpbusd`, in the encoding of AVX-VNNI (`VEX`) or in that of AVX-512, which a processor can have without the other.
/// Sums begin with the offset's share.
pub(crate) struct Vnni<const VEX: bool>;

/// Whether the processor has `Vnni<true>`. With [`crate::isa::Isa::AvxVnni`] it has `Vnni<false>` where it has not.
pub(crate) fn has_vex() -> bool {
    is_x86_feature_detected!("avxvnni")
}

impl<const VEX: bool> Vnni<VEX> {
    /// To each sum four codes of its row times four of a token. Assembly, so that both encodings are of the same compiled
    /// kernel.
    ///
    /// # Safety
    /// AVX2 and the instruction.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn dot(mut sum: __m256i, w: __m256i, x: __m256i) -> __m256i {
        // SAFETY: registers only, and `Vnni::dot` is promised the instruction; `linear` has checked panels and tokens,
        // `Dispatch::new` the level.
        unsafe {
            if VEX {
                asm!("{{vex}} vpdpbusd {sum}, {w}, {x}", sum = inout(ymm_reg) sum, w = in(ymm_reg) w,
                    x = in(ymm_reg) x, options(pure, nomem, nostack, preserves_flags));
            } else {
                asm!("{{evex}} vpdpbusd {sum}, {w}, {x}", sum = inout(ymm_reg) sum, w = in(ymm_reg) w,
                    x = in(ymm_reg) x, options(pure, nomem, nostack, preserves_flags));
            }
        }
        sum
    }
}

impl<const VEX: bool> Avx2DotProduct for Vnni<VEX> {
    #[inline(always)]
    unsafe fn sums<F: QuantizedTileFormat, const T: usize, const FROM: usize, const TO: usize>(
        w: &[Avx2Ints; 8],
        x: *const u8,
        m: *const Meta,
    ) -> [Avx2Ints; T] {
        // SAFETY: what `Avx2DotProduct::sums` is promised; `linear` has checked panels and tokens, `Dispatch::new` the
        // level.
        unsafe {
            let mut sums = [[_mm256_setzero_si256(); 2]; T];
            if F::OFFSET != 0 {
                unroll!(I < T {
                    sums[I] = [offset::<F, FROM, TO>(&*m.add(I)); 2];
                });
            }
            unroll!(G in [0 1 2 3 4 5 6 7] {
                if (FROM..TO).contains(&G) {
                    unroll!(I < T {
                        let a = word(x, I, G);
                        unroll!(H in [0 1] {
                            sums[I][H] = Self::dot(sums[I][H], w[G][H], a);
                        });
                    });
                }
            });
            sums
        }
    }
}
