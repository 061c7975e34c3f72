//! A block of a token as Winograd's inner products read it (`linear/avx512/winograd.rs`).

use super::{ActivationBufferLayout, ActivationEncoding, Meta, TOKEN_TILE};
use crate::isa::Isa;
use crate::pack::BLOCK;
use std::arch::x86_64::*;
use std::ops::Range;
use yirage_ir::activation::q8a::MOST;

// Sums of codes and numbers are bytes: those of the first codes unsigned, those of the second signed.
const _: () = assert!(
    WinogradActivations::MORE >= MOST as i32
        && (1 << WinogradActivations::BITS) - 1 + WinogradActivations::MORE + MOST as i32 <= 255
);
const _: () = assert!(
    WinogradActivations::LESS + MOST as i32 <= 128
        && (1 << WinogradActivations::BITS) - 1 - WinogradActivations::LESS + MOST as i32 <= 127
);

/// Everything that such a product reads of a block. Of the products `(p + MORE + b) * (q - LESS + a)`, `a` and `b` being
/// numbers of the block 16 apart, a part is the token's whatever the row; beside it and the row's own there is `p * a + q * b`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WinogradActivations {
    /// Minus the token's part, for codes without an offset.
    pub plain: i32,
    /// The same for codes with an offset of [`WinogradActivations::OFFSET`].
    pub offset: i32,
    /// The scale.
    pub scale: f32,
    /// Scale times the sum of the codes.
    pub scaled_sum: f32,
    /// The first 16 codes.
    pub first: [i8; BLOCK / 2],
    /// The others, plus [`WinogradActivations::MORE`].
    pub second: [u8; BLOCK / 2],
}

impl WinogradActivations {
    /// Bits of the largest codes of weights.
    pub const BITS: u32 = 4;
    /// What is added to a token's second numbers.
    pub const MORE: i32 = 120;
    /// What is taken from a row's second codes.
    pub const LESS: i32 = 8;
    /// Half of the largest code, rounded up.
    pub const OFFSET: i32 = 1 << (Self::BITS - 1);

    /// Of a block.
    pub fn of(codes: &[i8; BLOCK], meta: &Meta) -> WinogradActivations {
        let (first, second) = (codes.first_chunk(), codes.last_chunk::<{ BLOCK / 2 }>());
        let (Some(&first), Some(second)) = (first, second) else { unreachable!("a block has 32 codes") };
        let products: i32 = first.iter().zip(second).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum();
        let plain = Self::MORE * meta.minus_first - Self::LESS * (meta.minus_sum - meta.minus_first) - products;
        let second = second.map(|code| code.wrapping_add(Self::MORE as i8) as u8);
        let offset = plain + Self::OFFSET * meta.minus_sum;
        WinogradActivations { plain, offset, scale: meta.scale, scaled_sum: meta.scaled_sum, first, second }
    }

    /// Of the same block of four tokens.
    ///
    /// # Safety
    /// Four blocks at `codes` and at `metas`, room for four at `out`; AVX-512 with VNNI.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    unsafe fn four(codes: *const [i8; BLOCK], metas: *const Meta, out: *mut WinogradActivations) {
        // SAFETY: what `WinogradActivations::four` is promised; two blocks of codes, four metas, and a third of four
        // pairs have 64 bytes; `ActivationBufferLayout::store` has checked the tokens.
        unsafe {
            let [x, y] = [0, 2].map(|i| _mm512_loadu_si512(codes.add(i).cast()));
            let a = _mm512_permutex2var_epi64(x, _mm512_setr_epi64(0, 1, 4, 5, 8, 9, 12, 13), y);
            let b = _mm512_permutex2var_epi64(x, _mm512_setr_epi64(2, 3, 6, 7, 10, 11, 14, 15), y);
            let b = _mm512_add_epi8(b, _mm512_set1_epi8(Self::MORE as i8));
            // The products and what is `MORE` too much of them, in each number of a token's four.
            let sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), b, a);
            let sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32::<0b01_00_11_10>(sums));
            let sums = _mm512_add_epi32(sums, _mm512_shuffle_epi32::<0b10_11_00_01>(sums));
            // Scale, its product with the sum, minus the sum, minus the first sum; then the other way round.
            let metas = _mm512_loadu_si512(metas.cast());
            let (all, first) =
                (_mm512_shuffle_epi32::<0b10_10_10_10>(metas), _mm512_shuffle_epi32::<0b11_11_11_11>(metas));
            let less = _mm512_mullo_epi32(_mm512_sub_epi32(first, all), _mm512_set1_epi32(Self::LESS));
            let plain = _mm512_sub_epi32(less, sums);
            let offset = _mm512_mullo_epi32(all, _mm512_set1_epi32(Self::OFFSET));
            let head = _mm512_mask_add_epi32(plain, 0x2222, plain, offset);
            let head = _mm512_mask_shuffle_epi32::<0b01_00_01_00>(head, 0xcccc, metas);
            // Parts of 16 bytes: the head, the first codes, the second ones, token by token.
            let part = |x, y, z, order: [i64; 8], from: u8| {
                let [o0, o1, o2, o3, o4, o5, o6, o7] = order;
                let two = _mm512_permutex2var_epi64(x, _mm512_setr_epi64(o0, o1, o2, o3, o4, o5, o6, o7), y);
                _mm512_mask_permutexvar_epi64(two, from, _mm512_setr_epi64(o0, o1, o2, o3, o4, o5, o6, o7), z)
            };
            let parts = [
                part(head, a, b, [0, 1, 8, 9, 0, 1, 2, 3], 0b0011_0000),
                part(a, b, head, [2, 3, 10, 11, 4, 5, 4, 5], 0b0011_0000),
                part(b, head, a, [4, 5, 14, 15, 6, 7, 6, 7], 0b0011_0000),
            ];
            for (i, part) in parts.into_iter().enumerate() {
                _mm512_storeu_si512(out.cast::<u8>().add(64 * i).cast(), part);
            }
        }
    }
}

impl ActivationBufferLayout {
    /// Stores the [`WinogradActivations`] of a range of tokens where a kernel may read them: in full tiles.
    ///
    /// # Safety
    /// As [`ActivationBufferLayout::store`]; the tokens' codes and metas are stored.
    pub(super) unsafe fn store_pairs(&self, isa: Isa, range: Range<usize>, out: *mut u8) {
        if !self.pairs || self.form != ActivationEncoding::Q8 || isa.vectors() != Isa::Avx512 {
            return;
        }
        let tiles = (range.start / TOKEN_TILE..range.end.div_ceil(TOKEN_TILE)).map(|number| self.tile(number));
        for tile in tiles.filter(|tile| tile.tokens == TOKEN_TILE) {
            let tokens = range.start.max(tile.first) - tile.first..range.end.min(tile.first + TOKEN_TILE) - tile.first;
            for first in (0..self.blocks()).map(|b| tile.first * self.blocks() + b * TOKEN_TILE) {
                let codes = |t: usize| out.wrapping_add((first + t) * BLOCK).cast::<[i8; BLOCK]>().cast_const();
                let metas = |t: usize| out.wrapping_add(self.meta_offset()).cast::<Meta>().wrapping_add(first + t);
                let pairs = |t: usize| {
                    out.wrapping_add(self.pairs_offset()).cast::<WinogradActivations>().wrapping_add(first + t)
                };
                // SAFETY: these are blocks of this layout; all levels of AVX-512 have VNNI.
                unsafe {
                    let fours = tokens.len() / 4 * 4;
                    for t in tokens.clone().take(fours).step_by(4) {
                        WinogradActivations::four(codes(t), metas(t), pairs(t));
                    }
                    for t in tokens.clone().skip(fours) {
                        pairs(t).write_unaligned(WinogradActivations::of(&*codes(t), &metas(t).read_unaligned()));
                    }
                }
            }
        }
    }
}
