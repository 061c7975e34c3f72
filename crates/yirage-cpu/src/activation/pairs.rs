//! What a block of a token takes from Winograd's inner products (`linear/avx512/winograd.rs`), whatever the row.

use super::Meta;
use crate::pack::BLOCK;
use std::arch::x86_64::*;
use yirage_ir::layout::q8a::MOST;

// Sums of codes and numbers are bytes: those of the first codes unsigned, those of the second signed.
const _: () = assert!(Pairs::FIRST >= MOST as i32 && (1 << Pairs::BITS) - 1 + Pairs::FIRST + MOST as i32 <= 255);
const _: () = assert!(Pairs::SECOND + MOST as i32 <= 128 && (1 << Pairs::BITS) - 1 - Pairs::SECOND + MOST as i32 <= 127);

/// Minus the token's share of the products `(p + FIRST + b) * (q - SECOND + a)`, `a` and `b` being numbers of the block 16
/// apart: what is left beside it and the row's share is `p * a + q * b`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pairs {
    /// For codes without an offset.
    pub(crate) plain: i32,
    /// For codes with an offset of [`Pairs::OFFSET`].
    pub(crate) offset: i32,
}

impl Pairs {
    /// Bits of the largest codes.
    pub(crate) const BITS: u32 = 5;
    /// What is added to a row's first codes.
    pub(crate) const FIRST: i32 = 112;
    /// What is taken from its second codes.
    pub(crate) const SECOND: i32 = 16;
    /// Half of the largest code, rounded up.
    pub(crate) const OFFSET: i32 = 1 << (Self::BITS - 1);

    /// Of a block.
    ///
    /// # Safety
    /// The CPU has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn of(codes: &[i8; BLOCK], meta: &Meta) -> Pairs {
        // SAFETY: 32 codes.
        let [a, b] = [0, 16].map(|at| unsafe { _mm_loadu_si128(codes.as_ptr().add(at).cast()) });
        let eights = _mm256_madd_epi16(_mm256_cvtepi8_epi16(a), _mm256_cvtepi8_epi16(b));
        let fours = _mm_add_epi32(_mm256_castsi256_si128(eights), _mm256_extracti128_si256::<1>(eights));
        let twos = _mm_add_epi32(fours, _mm_shuffle_epi32::<0b01_00_11_10>(fours));
        let products = _mm_cvtsi128_si32(_mm_add_epi32(twos, _mm_shuffle_epi32::<0b10_11_00_01>(twos)));
        let plain = Self::FIRST * meta.minus_first - Self::SECOND * (meta.minus_sum - meta.minus_first) - products;
        Pairs { plain, offset: plain + Self::OFFSET * meta.minus_sum }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::Isa;

    #[test]
    fn what_is_left_of_the_products_is_that_of_the_codes() {
        if !Isa::Avx2.available() {
            return;
        }
        for round in 0..200i32 {
            let number = |i: i32, most: i32| (i * 7919 + round * 104_729 + i * i * round) % (most + 1);
            let codes: [i8; BLOCK] = std::array::from_fn(|i| (number(i as i32, 2 * i32::from(MOST)) - i32::from(MOST)) as i8);
            let row: [i32; BLOCK] = std::array::from_fn(|i| number(i as i32 + 40, 31));
            let sum = |some: &[i8]| some.iter().map(|c| i32::from(*c)).sum::<i32>();
            let meta = Meta { minus_sum: -sum(&codes), minus_first: -sum(&codes[..16]), ..Meta::default() };
            // SAFETY: just asked.
            let pairs = unsafe { Pairs::of(&codes, &meta) };
            let (mut all, mut own) = (0, 0);
            for i in 0..16 {
                let (p, q) = (row[i] + Pairs::FIRST, row[i + 16] - Pairs::SECOND);
                all += (p + i32::from(codes[i + 16])) * (q + i32::from(codes[i]));
                own += p * q;
            }
            let dot = |offset: i32| (0..BLOCK).map(|i| (row[i] - offset) * i32::from(codes[i])).sum::<i32>();
            assert_eq!((all - own + pairs.plain, all - own + pairs.offset), (dot(0), dot(Pairs::OFFSET)));
        }
    }
}
