//! Lanes as two AVX registers (AVX2, FMA, F16C).

use super::{ByteLanes as _, LANES, Lanes, WithLanes};
use std::arch::x86_64::*;

/// Lanes 0 to 7, lanes 8 to 15.
#[derive(Clone, Copy)]
pub(crate) struct Avx2(pub(super) __m256, pub(super) __m256);

/// The window of eight words from `8 - n` on has its first `n` words set.
static FIRST: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

/// A mask of the first `n` of eight lanes.
#[inline(always)]
unsafe fn first(n: usize) -> __m256 {
    // SAFETY: `8 - n` is at most 8, so eight words follow it in the table.
    unsafe { _mm256_loadu_ps(FIRST.as_ptr().add(8 - n.min(8)).cast()) }
}

macro_rules! both {
    ($f:ident, $a:expr, $b:expr) => {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx2($f($a.0, $b.0), $f($a.1, $b.1)) }
    };
}

impl Lanes for Avx2 {
    // Six fit sixteen registers only until stored values are converted on the way: measured slower.
    const ROWS: usize = 4;
    const WIDE: bool = false;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx2(_mm256_set1_ps(x), _mm256_set1_ps(x)) }
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        // SAFETY: `Lanes::load` is promised sixteen floats.
        unsafe { Avx2(_mm256_loadu_ps(p), _mm256_loadu_ps(p.add(8))) }
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        // SAFETY: `Lanes::store` is promised sixteen floats.
        unsafe {
            _mm256_storeu_ps(p, self.0);
            _mm256_storeu_ps(p.add(8), self.1);
        }
    }
    #[inline(always)]
    unsafe fn stream(self, p: *mut f32) {
        // SAFETY: `Lanes::stream` is promised sixteen floats, and for where they are.
        unsafe {
            _mm256_stream_ps(p, self.0);
            _mm256_stream_ps(p.add(8), self.1);
        }
    }
    #[inline(always)]
    unsafe fn load_f16(p: *const u16) -> Self {
        // SAFETY: `Lanes::load_f16` is promised sixteen halves.
        unsafe { Avx2(_mm256_cvtph_ps(_mm_loadu_si128(p.cast())), _mm256_cvtph_ps(_mm_loadu_si128(p.add(8).cast()))) }
    }
    #[inline(always)]
    unsafe fn turn(rows: &[*const f32; LANES]) -> [Self; 4] {
        // SAFETY: `Lanes::turn` is promised four values of each row.
        unsafe {
            let words = Self::words(&rows.map(|row| row.cast()), 0);
            words.map(|[a, b]| Avx2(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b)))
        }
    }
    #[inline(always)]
    unsafe fn load_i8(p: *const i8) -> Self {
        // SAFETY: `Lanes::load_i8` is promised sixteen bytes.
        unsafe {
            let (a, b) = (_mm_loadl_epi64(p.cast()), _mm_loadl_epi64(p.add(8).cast()));
            Avx2(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(a)), _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(b)))
        }
    }
    #[inline(always)]
    unsafe fn load_bf16_pairs(p: *const u16) -> (Self, Self) {
        // SAFETY: `Lanes::load_bf16_pairs` is promised thirty-two values.
        unsafe {
            let (a, b) = (_mm256_loadu_si256(p.cast()), _mm256_loadu_si256(p.add(LANES).cast()));
            let high = _mm256_set1_epi32(0xffff_0000_u32 as i32);
            let even =
                Avx2(_mm256_castsi256_ps(_mm256_slli_epi32::<16>(a)), _mm256_castsi256_ps(_mm256_slli_epi32::<16>(b)));
            let odd =
                Avx2(_mm256_castsi256_ps(_mm256_and_si256(a, high)), _mm256_castsi256_ps(_mm256_and_si256(b, high)));
            (even, odd)
        }
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        both!(_mm256_add_ps, self, b)
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        both!(_mm256_sub_ps, self, b)
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        both!(_mm256_mul_ps, self, b)
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        both!(_mm256_div_ps, self, b)
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx2(_mm256_fmadd_ps(self.0, b.0, c.0), _mm256_fmadd_ps(self.1, b.1, c.1)) }
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        both!(_mm256_max_ps, self, b)
    }
    #[inline(always)]
    fn min(self, b: Self) -> Self {
        both!(_mm256_min_ps, self, b)
    }
    #[inline(always)]
    fn round(self) -> Self {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx2(_mm256_round_ps::<NEAREST>(self.0), _mm256_round_ps::<NEAREST>(self.1)) }
    }
    #[inline(always)]
    fn pow2(self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let bias = _mm256_set1_epi32(127);
            let (a, b) = (_mm256_cvtps_epi32(self.0), _mm256_cvtps_epi32(self.1));
            let a = _mm256_slli_epi32::<23>(_mm256_add_epi32(a, bias));
            let b = _mm256_slli_epi32::<23>(_mm256_add_epi32(b, bias));
            Avx2(_mm256_castsi256_ps(a), _mm256_castsi256_ps(b))
        }
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx2(_mm256_sqrt_ps(self.0), _mm256_sqrt_ps(self.1)) }
    }
    #[inline(always)]
    fn abs(self) -> Self {
        let sign = Self::splat(-0.0);
        both!(_mm256_andnot_ps, sign, self)
    }
    #[inline(always)]
    fn with_sign(self, sign: Self) -> Self {
        let bit = Self::splat(-0.0);
        let (sign, size) = (both!(_mm256_and_ps, bit, sign), both!(_mm256_andnot_ps, bit, self));
        both!(_mm256_or_ps, sign, size)
    }
    #[inline(always)]
    fn if_less(self, b: Self, x: Self, y: Self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let (m0, m1) = (_mm256_cmp_ps::<_CMP_LT_OQ>(self.0, b.0), _mm256_cmp_ps::<_CMP_LT_OQ>(self.1, b.1));
            Avx2(_mm256_blendv_ps(y.0, x.0, m0), _mm256_blendv_ps(y.1, x.1, m1))
        }
    }
    #[inline(always)]
    fn keep(self, from: usize, to: usize, other: Self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let m0 = _mm256_andnot_ps(first(from), first(to));
            let m1 = _mm256_andnot_ps(first(from.saturating_sub(8)), first(to.saturating_sub(8)));
            Avx2(_mm256_blendv_ps(other.0, self.0, m0), _mm256_blendv_ps(other.1, self.1, m1))
        }
    }
    #[inline(always)]
    fn any_greater(self, b: Self) -> bool {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let m = _mm256_or_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(self.0, b.0), _mm256_cmp_ps::<_CMP_GT_OQ>(self.1, b.1));
            _mm256_movemask_ps(m) != 0
        }
    }
    #[inline(always)]
    fn any_nan(self) -> bool {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let m = _mm256_or_ps(
                _mm256_cmp_ps::<_CMP_UNORD_Q>(self.0, self.0),
                _mm256_cmp_ps::<_CMP_UNORD_Q>(self.1, self.1),
            );
            _mm256_movemask_ps(m) != 0
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let v = _mm256_add_ps(self.0, self.1);
            let v = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let v = _mm_add_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_add_ss(v, _mm_shuffle_ps::<1>(v, v)))
        }
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let v = _mm256_max_ps(self.0, self.1);
            let v = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps::<1>(v));
            let v = _mm_max_ps(v, _mm_movehl_ps(v, v));
            _mm_cvtss_f32(_mm_max_ss(v, _mm_shuffle_ps::<1>(v, v)))
        }
    }
    #[inline(always)]
    unsafe fn apart<K: WithLanes>(kernel: K) -> K::Out {
        // SAFETY: `WithLanes::run` wants what `Lanes::apart` is promised: the instructions among it.
        unsafe { super::run_avx2(kernel) }
    }
}
