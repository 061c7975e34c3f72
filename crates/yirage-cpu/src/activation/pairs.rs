//! A block of a token as Winograd's inner products read it (`linear/avx512/winograd.rs`).

use super::Meta;
use crate::pack::BLOCK;
use std::arch::x86_64::*;
use yirage_ir::layout::q8a::MOST;

// Sums of codes and numbers are bytes: those of the first codes unsigned, those of the second signed.
const _: () = assert!(Pairs::MORE >= MOST as i32 && (1 << Pairs::BITS) - 1 + Pairs::MORE + MOST as i32 <= 255);
const _: () = assert!(Pairs::LESS + MOST as i32 <= 128 && (1 << Pairs::BITS) - 1 - Pairs::LESS + MOST as i32 <= 127);

/// Everything that such a product reads of a block. Of the products `(p + MORE + b) * (q - LESS + a)`, `a` and `b` being
/// numbers of the block 16 apart, a part is the token's whatever the row; beside it and the row's own there is `p * a + q * b`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Pairs {
    /// Minus the token's part, for codes without an offset.
    pub(crate) plain: i32,
    /// The same for codes with an offset of [`Pairs::OFFSET`].
    pub(crate) offset: i32,
    /// The scale.
    pub(crate) scale: f32,
    /// Scale times the sum of the codes.
    pub(crate) scaled_sum: f32,
    /// The first 16 codes.
    pub(crate) first: [i8; BLOCK / 2],
    /// The others, plus [`Pairs::MORE`].
    pub(crate) second: [u8; BLOCK / 2],
}

impl Pairs {
    /// Bits of the largest codes of weights.
    pub(crate) const BITS: u32 = 4;
    /// What is added to a token's second numbers.
    pub(crate) const MORE: i32 = 120;
    /// What is taken from a row's second codes.
    pub(crate) const LESS: i32 = 8;
    /// Half of the largest code, rounded up.
    pub(crate) const OFFSET: i32 = 1 << (Self::BITS - 1);

    /// Of a block.
    ///
    /// # Safety
    /// The CPU has AVX2.
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn of(codes: &[i8; BLOCK], meta: &Meta) -> Pairs {
        let (first, second) = (codes.first_chunk::<16>(), codes.last_chunk::<16>());
        let (Some(&first), Some(second)) = (first, second) else { unreachable!("a block has 32 codes") };
        // SAFETY: 16 codes each.
        let (a, b) = unsafe { (_mm_loadu_si128(first.as_ptr().cast()), _mm_loadu_si128(second.as_ptr().cast())) };
        let eights = _mm256_madd_epi16(_mm256_cvtepi8_epi16(a), _mm256_cvtepi8_epi16(b));
        let fours = _mm_add_epi32(_mm256_castsi256_si128(eights), _mm256_extracti128_si256::<1>(eights));
        let twos = _mm_add_epi32(fours, _mm_shuffle_epi32::<0b01_00_11_10>(fours));
        let products = _mm_cvtsi128_si32(_mm_add_epi32(twos, _mm_shuffle_epi32::<0b10_11_00_01>(twos)));
        let plain = Self::MORE * meta.minus_first - Self::LESS * (meta.minus_sum - meta.minus_first) - products;
        let second = second.map(|code| code.wrapping_add(Self::MORE as i8) as u8);
        let offset = plain + Self::OFFSET * meta.minus_sum;
        Pairs { plain, offset, scale: meta.scale, scaled_sum: meta.scaled_sum, first, second }
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
            let codes: [i8; BLOCK] =
                std::array::from_fn(|i| (number(i as i32, 2 * i32::from(MOST)) - i32::from(MOST)) as i8);
            let row: [i32; BLOCK] = std::array::from_fn(|i| number(i as i32 + 40, 15));
            let sum = |some: &[i8]| some.iter().map(|c| i32::from(*c)).sum::<i32>();
            let meta = Meta { minus_sum: -sum(&codes), minus_first: -sum(&codes[..16]), ..Meta::default() };
            // SAFETY: just asked.
            let pairs = unsafe { Pairs::of(&codes, &meta) };
            let (mut all, mut own) = (0, 0);
            for i in 0..16 {
                let (p, q) = (row[i] + Pairs::MORE, row[i + 16] - Pairs::LESS);
                all += (row[i] + i32::from(pairs.second[i])) * (q + i32::from(pairs.first[i]));
                own += p * q;
            }
            let dot = |offset: i32| (0..BLOCK).map(|i| (row[i] - offset) * i32::from(codes[i])).sum::<i32>();
            assert_eq!((all - own + pairs.plain, all - own + pairs.offset), (dot(0), dot(Pairs::OFFSET)));
        }
    }
}
