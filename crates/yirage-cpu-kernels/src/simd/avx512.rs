//! Lanes as one AVX-512 register.

use super::{ByteLanes as _, LANES, Lanes, WithLanes};
use std::arch::x86_64::*;

/// All sixteen lanes.
#[derive(Clone, Copy)]
pub(crate) struct Avx512(pub(super) __m512);

/// One mask bit for each of lanes `from..to`.
#[inline(always)]
fn between(from: usize, to: usize) -> u16 {
    (((1u32 << to) - 1) & !((1u32 << from) - 1)) as u16
}

/// Lanes 8 to 15.
#[inline(always)]
unsafe fn high(v: __m512) -> __m256 {
    // SAFETY: used only where `launch` has enabled the instructions.
    unsafe { _mm256_castpd_ps(_mm512_extractf64x4_pd::<1>(_mm512_castps_pd(v))) }
}

macro_rules! one {
    ($f:ident, $a:expr, $b:expr) => {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512($f($a.0, $b.0)) }
    };
}

impl Lanes for Avx512 {
    const ROWS: usize = 8;
    const WIDE: bool = true;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_set1_ps(x)) }
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: `Lanes::load` is promised sixteen floats.
        unsafe { Avx512(_mm512_loadu_ps(p)) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: `Lanes::store` is promised sixteen floats.
        unsafe { _mm512_storeu_ps(p, self.0) }
    }
    #[inline(always)]
    unsafe fn stream(self, p: *mut f32) {
        // SAFETY: `Lanes::stream` is promised sixteen floats, and for where they are.
        unsafe { _mm512_stream_ps(p, self.0) }
    }
    #[inline(always)]
    unsafe fn load_f16(p: *const u16) -> Self {
        // SAFETY: `Lanes::load_f16` is promised sixteen halves.
        unsafe { Avx512(_mm512_cvtph_ps(_mm256_loadu_si256(p.cast()))) }
    }
    #[inline(always)]
    unsafe fn turn(rows: &[*const f32; LANES]) -> [Self; 4] {
        // SAFETY: `Lanes::turn` is promised four values of each row.
        unsafe { Self::words(&rows.map(|row| row.cast()), 0).map(|v| Avx512(_mm512_castsi512_ps(v))) }
    }
    #[inline(always)]
    unsafe fn load_i8(p: *const i8) -> Self {
        // SAFETY: `Lanes::load_i8` is promised sixteen bytes.
        unsafe { Avx512(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(p.cast())))) }
    }
    #[inline(always)]
    unsafe fn load_bf16_pairs(p: *const u16) -> (Self, Self) {
        // SAFETY: `Lanes::load_bf16_pairs` is promised thirty-two values.
        unsafe {
            let w = _mm512_loadu_si512(p.cast());
            let high = _mm512_set1_epi32(0xffff_0000_u32 as i32);
            let even = _mm512_castsi512_ps(_mm512_slli_epi32::<16>(w));
            (Avx512(even), Avx512(_mm512_castsi512_ps(_mm512_and_si512(w, high))))
        }
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        one!(_mm512_add_ps, self, b)
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        one!(_mm512_sub_ps, self, b)
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        one!(_mm512_mul_ps, self, b)
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        one!(_mm512_div_ps, self, b)
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_fmadd_ps(self.0, b.0, c.0)) }
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        one!(_mm512_max_ps, self, b)
    }
    #[inline(always)]
    fn min(self, b: Self) -> Self {
        one!(_mm512_min_ps, self, b)
    }
    #[inline(always)]
    fn round(self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_roundscale_ps::<0>(self.0)) }
    }
    #[inline(always)]
    fn pow2(self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let n = _mm512_add_epi32(_mm512_cvtps_epi32(self.0), _mm512_set1_epi32(127));
            Avx512(_mm512_castsi512_ps(_mm512_slli_epi32::<23>(n)))
        }
    }
    #[inline(always)]
    fn scale(self, n: Self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_scalef_ps(self.0, n.0)) }
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_sqrt_ps(self.0)) }
    }
    #[inline(always)]
    fn abs(self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_abs_ps(self.0)) }
    }
    #[inline(always)]
    fn with_sign(self, sign: Self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let bit = _mm512_set1_epi32(i32::MIN);
            let (size, sign) = (_mm512_castps_si512(self.0), _mm512_castps_si512(sign.0));
            // bit ? sign : size
            Avx512(_mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0xca>(bit, sign, size)))
        }
    }
    #[inline(always)]
    fn if_less(self, b: Self, x: Self, y: Self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, b.0), y.0, x.0)) }
    }
    #[inline(always)]
    fn keep(self, from: usize, to: usize, other: Self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_mask_blend_ps(between(from, to), other.0, self.0)) }
    }
    #[inline(always)]
    fn any_greater(self, b: Self) -> bool {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { _mm512_cmp_ps_mask::<_CMP_GT_OQ>(self.0, b.0) != 0 }
    }
    #[inline(always)]
    fn any_nan(self) -> bool {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(self.0, self.0) != 0 }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let v = _mm256_add_ps(_mm512_castps512_ps256(self.0), high(self.0));
            let v = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps::<1>(v, v)))
        }
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let v = _mm256_max_ps(_mm512_castps512_ps256(self.0), high(self.0));
            let v = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let v = _mm_max_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_max_ss(v, _mm_shuffle_ps::<1>(v, v)))
        }
    }
    #[inline(always)]
    unsafe fn apart<K: WithLanes>(kernel: K) -> K::Out {
        // SAFETY: `WithLanes::run` wants what `Lanes::apart` is promised: the instructions among it.
        unsafe { super::run_avx512(kernel) }
    }
}
