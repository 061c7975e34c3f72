//! For which numbers products of pairs are those of numbers, to the bit.
//!
//! `vdpbf16ps` adds the product of the two numbers at odd places to a sum and then the product of those at even places, each
//! by a fused multiply-add that rounds to nearest (Intel SDM, "VDPBF16PS"; found to hold on AMD's processors by the tests). So
//! with l at the odd place and l + 1 at the even one, a sum is the same chain. What differs is what it does with numbers
//! below the normal range: it takes and gives zeros. [`ExponentLimits`] says for which numbers none can come up, for the others the
//! products are those of f32.

use crate::simd::{Lanes, WithLanes};

/// Magnitudes of floats, as their bits without the sign.
#[derive(Clone, Copy, Debug)]
pub(super) struct Magnitudes {
    /// The least one that is not zero, less one; a zero becomes the largest number.
    least: u32,
    most: u32,
    /// Bits that a bf16 number has not.
    low: u32,
}

/// Bits of f32 without the sign.
const MAGNITUDE: u32 = 0x7fff_ffff;
/// Places of f32's fraction; the exponent stands above it.
const FRACTION: u32 = 23;
/// What is added to exponents.
const BIAS: u32 = 127;
/// The exponent of what is no number.
const NO_NUMBER: u32 = 255;
/// Every sum is a multiple of the least product's last place, which is 2 to the power of both exponents less twice bf16's 7
/// places; that must not be below 2^-126.
const LEAST_EXPONENTS: u32 = 2 * BIAS + 14 - 126;
/// A million products below 2^100 are no infinity.
const MOST_EXPONENTS: u32 = 2 * BIAS + 100;

impl Magnitudes {
    /// Of no number.
    pub(super) const NONE: Magnitudes = Magnitudes { least: u32::MAX, most: 0, low: 0 };

    /// Of bf16 numbers, from the least magnitude less one and the largest.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // pairs are multiplied by AVX-512 alone
    pub(super) fn of_bf16(least: u16, most: u16) -> Magnitudes {
        let least = if least == u16::MAX { u32::MAX } else { ((u32::from(least) + 1) << 16) - 1 };
        Magnitudes { least, most: u32::from(most) << 16, low: 0 }
    }

    /// Of these numbers and others.
    pub(super) fn and(self, others: Magnitudes) -> Magnitudes {
        let Magnitudes { least, most, low } = others;
        Magnitudes { least: self.least.min(least), most: self.most.max(most), low: self.low | low }
    }

    /// Whether all are numbers of bf16.
    pub(super) fn are_bf16(self) -> bool {
        self.low == 0
    }

    /// The exponent of the least one, with the bias; none where all are zeros.
    fn least_exponent(self) -> Option<u32> {
        (self.least != u32::MAX).then(|| (self.least + 1) >> FRACTION)
    }

    /// Whether chains of products may go on from such sums.
    pub(super) fn are_plain_sums(self) -> bool {
        self.least_exponent().is_none_or(|least| least > FRACTION) && self.most >> FRACTION <= BIAS + 100
    }
}

/// Exponents that the numbers of a right side may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExponentLimits {
    /// Of numbers that are not zero.
    least: u32,
    most: u32,
}

impl ExponentLimits {
    /// Beside a left side of these numbers; none where no right side is plain.
    pub(super) fn beside(a: Magnitudes) -> Option<ExponentLimits> {
        let most = a.most >> FRACTION;
        // A left side of zeros makes products of zeros.
        let least = a.least_exponent().unwrap_or(LEAST_EXPONENTS);
        let plain = a.are_bf16() && least != 0 && most < NO_NUMBER;
        plain.then(|| ExponentLimits {
            least: LEAST_EXPONENTS.saturating_sub(least).max(1),
            most: (MOST_EXPONENTS - most).min(NO_NUMBER - 1),
        })
    }

    /// The least magnitude of bf16 that is not zero, less one, and the largest, of numbers within.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // pairs are multiplied by AVX-512 alone
    pub(super) fn of_bf16(self) -> [u16; 2] {
        let places = FRACTION - 16;
        [(self.least << places) - 1, (self.most << places) | ((1 << places) - 1)].map(|x| x as u16)
    }

    /// Whether sums of products with these numbers are the same two at a time.
    pub(super) fn hold(self, b: Magnitudes) -> bool {
        b.are_bf16() && b.most >> FRACTION <= self.most && b.least_exponent().is_none_or(|least| least >= self.least)
    }
}

/// Rows of packed numbers.
#[derive(Clone, Copy)]
pub(super) struct PackedBlockRows {
    pub(super) x: *mut f32,
    pub(super) pitch: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl WithLanes for PackedBlockRows {
    type Out = Magnitudes;

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> Magnitudes {
        let mut all = Magnitudes::NONE;
        for r in 0..self.rows {
            // SAFETY: who makes `PackedBlockRows` vouches for each of them.
            let row = unsafe { std::slice::from_raw_parts(self.x.add(r * self.pitch), self.columns) };
            for bits in row.iter().map(|x| x.to_bits()) {
                let magnitude = bits & MAGNITUDE;
                all.least = all.least.min(magnitude.wrapping_sub(1));
                all.most = all.most.max(magnitude);
                all.low |= bits & 0xffff;
            }
        }
        all
    }
}
