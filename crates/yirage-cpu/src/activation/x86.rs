//! Quantising 32 activations with AVX2; bit for bit what the portable version does.

use super::Meta;
use crate::pack::BLOCK;
use std::arch::x86_64::*;

/// Quantises 32 numbers to int8 with one scale.
///
/// # Safety
/// `src` is readable for 32 numbers, `codes` and `meta` are writable; the CPU has AVX2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn quantize(src: *const f32, codes: *mut [i8; BLOCK], meta: *mut Meta) {
    // SAFETY: as promised by the caller.
    let x: [__m256; 4] = unsafe { std::array::from_fn(|i| _mm256_loadu_ps(src.add(8 * i))) };
    let sign = _mm256_set1_ps(-0.0);
    let mut max = _mm256_setzero_ps();
    let mut finite = _mm256_castsi256_ps(_mm256_set1_epi32(-1));
    for v in x {
        let size = _mm256_andnot_ps(sign, v);
        max = _mm256_max_ps(size, max); // gives `max` if `size` is NaN
        finite = _mm256_and_ps(finite, _mm256_cmp_ps::<_CMP_LT_OQ>(size, _mm256_set1_ps(f32::INFINITY)));
    }
    let scale = largest(max) / 127.0;
    let inverse = _mm256_set1_ps(if scale > 0.0 { 1.0 / scale } else { 0.0 });
    let q = x.map(|v| {
        let v = _mm256_mul_ps(v, inverse);
        let number = _mm256_and_ps(v, _mm256_cmp_ps::<_CMP_ORD_Q>(v, v)); // NaN becomes 0
        let inside = _mm256_max_ps(_mm256_min_ps(number, _mm256_set1_ps(127.0)), _mm256_set1_ps(-127.0));
        _mm256_cvtps_epi32(inside)
    });
    let first = sum(_mm256_add_epi32(q[0], q[1]));
    let sum = first + sum(_mm256_add_epi32(q[2], q[3]));
    let bytes = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    let ordered = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    let scale = if _mm256_movemask_ps(finite) == 255 { scale } else { f32::NAN };
    // SAFETY: as promised by the caller.
    unsafe {
        _mm256_storeu_si256(codes.cast(), ordered);
        meta.write_unaligned(Meta { scale, scaled_sum: scale * sum as f32, minus_sum: -sum, minus_first: -first });
    }
}

#[target_feature(enable = "avx2")]
#[inline]
fn largest(v: __m256) -> f32 {
    let v = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
    let v = _mm_max_ps(v, _mm_movehl_ps(v, v));
    _mm_cvtss_f32(_mm_max_ss(v, _mm_movehdup_ps(v)))
}

#[target_feature(enable = "avx2")]
#[inline]
fn sum(v: __m256i) -> i32 {
    let v = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
    let v = _mm_add_epi32(v, _mm_shuffle_epi32::<0b01_00_11_10>(v));
    _mm_cvtsi128_si32(_mm_add_epi32(v, _mm_shuffle_epi32::<0b10_11_00_01>(v)))
}
