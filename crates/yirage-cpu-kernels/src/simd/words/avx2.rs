//! Words of two AVX registers.

use super::BitLanes;
use crate::simd::avx2::Avx2;
use std::arch::x86_64::*;

/// A function of whole numbers.
macro_rules! whole {
    ($f:ident, $a:expr, $b:expr) => {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let low = $f(_mm256_castps_si256($a.0), _mm256_castps_si256($b.0));
            let high = $f(_mm256_castps_si256($a.1), _mm256_castps_si256($b.1));
            Avx2(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high))
        }
    };
}

/// A function of both registers.
macro_rules! both {
    ($x:ident => $e:expr, $v:expr) => {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe {
            let low = {
                let $x = $v.0;
                $e
            };
            let $x = $v.1;
            Avx2(low, $e)
        }
    };
}

/// A comparison of floats.
macro_rules! compare {
    ($how:ident, $a:expr, $b:expr) => {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx2(_mm256_cmp_ps::<$how>($a.0, $b.0), _mm256_cmp_ps::<$how>($a.1, $b.1)) }
    };
}

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT;

/// The low halves of sixteen words, in order.
#[inline(always)]
unsafe fn narrow(v: Avx2) -> __m256i {
    // SAFETY: used only where `launch` has enabled the instructions.
    unsafe {
        let mixed = _mm256_packus_epi32(_mm256_castps_si256(v.0), _mm256_castps_si256(v.1));
        _mm256_permute4x64_epi64::<0b11_01_10_00>(mixed)
    }
}

impl BitLanes for Avx2 {
    #[inline(always)]
    fn word(bits: u32) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        let all = unsafe { _mm256_castsi256_ps(_mm256_set1_epi32(bits as i32)) };
        Avx2(all, all)
    }
    #[inline(always)]
    fn and(self, b: Self) -> Self {
        whole!(_mm256_and_si256, self, b)
    }
    #[inline(always)]
    fn or(self, b: Self) -> Self {
        whole!(_mm256_or_si256, self, b)
    }
    #[inline(always)]
    fn xor(self, b: Self) -> Self {
        whole!(_mm256_xor_si256, self, b)
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Self {
        // The count in a register: the instruction's own is of another type of constant.
        both!(x => _mm256_castsi256_ps(_mm256_sll_epi32(_mm256_castps_si256(x), _mm_cvtsi32_si128(N as i32))), self)
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Self {
        both!(x => _mm256_castsi256_ps(_mm256_srl_epi32(_mm256_castps_si256(x), _mm_cvtsi32_si128(N as i32))), self)
    }
    #[inline(always)]
    fn wrapping_add(self, b: Self) -> Self {
        whole!(_mm256_add_epi32, self, b)
    }
    #[inline(always)]
    fn wrapping_sub(self, b: Self) -> Self {
        whole!(_mm256_sub_epi32, self, b)
    }
    #[inline(always)]
    fn wrapping_mul(self, b: Self) -> Self {
        whole!(_mm256_mullo_epi32, self, b)
    }
    #[inline(always)]
    fn whole_less(self, b: Self) -> Self {
        whole!(_mm256_cmpgt_epi32, b, self)
    }
    #[inline(always)]
    fn whole_equal(self, b: Self) -> Self {
        whole!(_mm256_cmpeq_epi32, self, b)
    }
    #[inline(always)]
    fn less(self, b: Self) -> Self {
        compare!(_CMP_LT_OQ, self, b)
    }
    #[inline(always)]
    fn less_equal(self, b: Self) -> Self {
        compare!(_CMP_LE_OQ, self, b)
    }
    #[inline(always)]
    fn equal(self, b: Self) -> Self {
        compare!(_CMP_EQ_OQ, self, b)
    }
    #[inline(always)]
    fn choose(self, x: Self, y: Self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx2(_mm256_blendv_ps(y.0, x.0, self.0), _mm256_blendv_ps(y.1, x.1, self.1)) }
    }
    #[inline(always)]
    fn floats(self) -> Self {
        both!(x => _mm256_cvtepi32_ps(_mm256_castps_si256(x)), self)
    }
    #[inline(always)]
    fn cut(self) -> Self {
        both!(x => _mm256_castsi256_ps(_mm256_cvttps_epi32(x)), self)
    }
    #[inline(always)]
    fn halves(self) -> Self {
        both!(x => _mm256_cvtph_ps(_mm256_cvtps_ph::<NEAREST>(x)), self)
    }
    #[inline(always)]
    unsafe fn store_f16(self, p: *mut u16) {
        // SAFETY: `BitLanes::store_f16` is promised sixteen halves.
        unsafe {
            _mm_storeu_si128(p.cast(), _mm256_cvtps_ph::<NEAREST>(self.0));
            _mm_storeu_si128(p.add(8).cast(), _mm256_cvtps_ph::<NEAREST>(self.1));
        }
    }
    #[inline(always)]
    unsafe fn load_u16(p: *const u16) -> Self {
        // SAFETY: `BitLanes::load_u16` is promised sixteen words.
        unsafe {
            let low = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.cast()));
            let high = _mm256_cvtepu16_epi32(_mm_loadu_si128(p.add(8).cast()));
            Avx2(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high))
        }
    }
    #[inline(always)]
    unsafe fn store_u16(self, p: *mut u16) {
        // SAFETY: `BitLanes::store_u16` is promised sixteen words.
        unsafe { _mm256_storeu_si256(p.cast(), narrow(self)) }
    }
    #[inline(always)]
    unsafe fn load_u8(p: *const u8) -> Self {
        // SAFETY: `BitLanes::load_u8` is promised sixteen bytes.
        unsafe {
            let low = _mm256_cvtepu8_epi32(_mm_loadl_epi64(p.cast()));
            let high = _mm256_cvtepu8_epi32(_mm_loadl_epi64(p.add(8).cast()));
            Avx2(_mm256_castsi256_ps(low), _mm256_castsi256_ps(high))
        }
    }
    #[inline(always)]
    unsafe fn store_u8(self, p: *mut u8) {
        // SAFETY: `BitLanes::store_u8` is promised sixteen bytes.
        unsafe {
            let words = narrow(self);
            let bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            _mm_storeu_si128(p.cast(), bytes);
        }
    }
}
