//! Quantising 32 activations with AVX2; bit for bit what the portable version does.

use super::{Meta, scalar};
use crate::pack::BLOCK;
use std::arch::x86_64::*;
use yirage_ir::activation::q8a::MOST;

/// What is smaller has a scale whose reciprocal may be infinite.
const LEAST: u32 = (127 - 100) << 23;
/// The bits of infinity: what has no sign and is not below them is no number.
const INFINITE: u32 = f32::INFINITY.to_bits();

/// Quantises 32 numbers to int8 with one scale.
///
/// # Safety
/// `src` is readable for 32 numbers, `codes` and `meta` are writable; the CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn quantize(src: *const f32, codes: *mut [i8; BLOCK], meta: *mut Meta) {
    // SAFETY: what `quantize` is promised; `ActivationBufferLayout::store` has checked the tokens.
    let x: [__m256; 4] = unsafe { std::array::from_fn(|i| _mm256_loadu_ps(src.add(8 * i))) };
    // Numbers without sign are in the order of their bits.
    let sizes = x.map(|v| _mm256_and_si256(_mm256_castps_si256(v), _mm256_set1_epi32(i32::MAX)));
    let largest = largest(_mm256_max_epu32(_mm256_max_epu32(sizes[0], sizes[1]), _mm256_max_epu32(sizes[2], sizes[3])));
    if !(LEAST..INFINITE).contains(&largest) {
        // SAFETY: what `quantize` is promised; `ActivationBufferLayout::store` has checked the tokens.
        return unsafe { scalar::quantize(src, codes, meta) };
    }
    let scale = f32::from_bits(largest) / f32::from(MOST);
    let inverse = _mm256_set1_ps(1.0 / scale);
    // No code is beyond `MOST`, since the reciprocal is off by its last bits alone.
    let q = x.map(|v| _mm256_cvtps_epi32(_mm256_mul_ps(v, inverse)));
    let bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    let ordered = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    let [first, second] = sums(ordered);
    let sum = first + second;
    // SAFETY: what `quantize` is promised; `ActivationBufferLayout::store` has checked the tokens.
    unsafe {
        _mm256_storeu_si256(codes.cast(), ordered);
        meta.write_unaligned(Meta { scale, scaled_sum: scale * sum as f32, minus_sum: -sum, minus_first: -first });
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn largest(v: __m256i) -> u32 {
    let v = _mm_max_epu32(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
    let v = _mm_max_epu32(v, _mm_shuffle_epi32::<0b01_00_11_10>(v));
    _mm_cvtsi128_si32(_mm_max_epu32(v, _mm_shuffle_epi32::<0b10_11_00_01>(v))) as u32
}

/// The sums of the first 16 bytes and of the others.
#[target_feature(enable = "avx2")]
#[inline]
fn sums(bytes: __m256i) -> [i32; 2] {
    let unsigned = _mm256_xor_si256(bytes, _mm256_set1_epi8(i8::MIN));
    let eights = _mm256_sad_epu8(unsigned, _mm256_setzero_si256());
    let halves = [_mm256_castsi256_si128(eights), _mm256_extracti128_si256::<1>(eights)];
    halves.map(|v| _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_unpackhi_epi64(v, v))) - 16 * 128)
}
