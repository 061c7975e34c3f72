//! Words of one AVX-512 register.

use super::BitLanes;
use crate::simd::avx512::Avx512;
use std::arch::x86_64::*;

/// A function of whole numbers.
macro_rules! whole {
    ($f:ident $(::<$n:ident>)?, $($x:expr),+) => {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_castsi512_ps($f $(::<$n>)? ($(_mm512_castps_si512($x.0)),+))) }
    };
}

/// All bits of the lanes that a condition holds for.
macro_rules! mask {
    ($cond:expr) => {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_castsi512_ps(_mm512_maskz_set1_epi32($cond, -1))) }
    };
}

impl BitLanes for Avx512 {
    #[inline(always)]
    fn word(bits: u32) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_castsi512_ps(_mm512_set1_epi32(bits as i32))) }
    }
    #[inline(always)]
    fn and(self, b: Self) -> Self {
        whole!(_mm512_and_si512, self, b)
    }
    #[inline(always)]
    fn or(self, b: Self) -> Self {
        whole!(_mm512_or_si512, self, b)
    }
    #[inline(always)]
    fn xor(self, b: Self) -> Self {
        whole!(_mm512_xor_si512, self, b)
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Self {
        whole!(_mm512_slli_epi32::<N>, self)
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Self {
        whole!(_mm512_srli_epi32::<N>, self)
    }
    #[inline(always)]
    fn wrapping_add(self, b: Self) -> Self {
        whole!(_mm512_add_epi32, self, b)
    }
    #[inline(always)]
    fn wrapping_sub(self, b: Self) -> Self {
        whole!(_mm512_sub_epi32, self, b)
    }
    #[inline(always)]
    fn wrapping_mul(self, b: Self) -> Self {
        whole!(_mm512_mullo_epi32, self, b)
    }
    #[inline(always)]
    fn whole_less(self, b: Self) -> Self {
        mask!(_mm512_cmplt_epi32_mask(_mm512_castps_si512(self.0), _mm512_castps_si512(b.0)))
    }
    #[inline(always)]
    fn whole_equal(self, b: Self) -> Self {
        mask!(_mm512_cmpeq_epi32_mask(_mm512_castps_si512(self.0), _mm512_castps_si512(b.0)))
    }
    #[inline(always)]
    fn less(self, b: Self) -> Self {
        mask!(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, b.0))
    }
    #[inline(always)]
    fn less_equal(self, b: Self) -> Self {
        mask!(_mm512_cmp_ps_mask::<_CMP_LE_OQ>(self.0, b.0))
    }
    #[inline(always)]
    fn equal(self, b: Self) -> Self {
        mask!(_mm512_cmp_ps_mask::<_CMP_EQ_OQ>(self.0, b.0))
    }
    #[inline(always)]
    fn choose(self, x: Self, y: Self) -> Self {
        // self ? x : y, bit by bit
        whole!(ternary_choose, self, x, y)
    }
    #[inline(always)]
    fn floats(self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_cvtepi32_ps(_mm512_castps_si512(self.0))) }
    }
    #[inline(always)]
    fn cut(self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_castsi512_ps(_mm512_cvttps_epi32(self.0))) }
    }
    #[inline(always)]
    fn halves(self) -> Self {
        // SAFETY: used only where `launch` has enabled the instructions.
        unsafe { Avx512(_mm512_cvtph_ps(_mm512_cvtps_ph::<NEAREST>(self.0))) }
    }
    #[inline(always)]
    unsafe fn store_f16(self, p: *mut u16) {
        // SAFETY: `BitLanes::store_f16` is promised sixteen halves.
        unsafe { _mm256_storeu_si256(p.cast(), _mm512_cvtps_ph::<NEAREST>(self.0)) }
    }
    #[inline(always)]
    unsafe fn load_u16(p: *const u16) -> Self {
        // SAFETY: `BitLanes::load_u16` is promised sixteen words.
        unsafe { Avx512(_mm512_castsi512_ps(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p.cast())))) }
    }
    #[inline(always)]
    unsafe fn store_u16(self, p: *mut u16) {
        // SAFETY: `BitLanes::store_u16` is promised sixteen words.
        unsafe { _mm256_storeu_si256(p.cast(), _mm512_cvtepi32_epi16(_mm512_castps_si512(self.0))) }
    }
    #[inline(always)]
    unsafe fn load_u8(p: *const u8) -> Self {
        // SAFETY: `BitLanes::load_u8` is promised sixteen bytes.
        unsafe { Avx512(_mm512_castsi512_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(p.cast())))) }
    }
    #[inline(always)]
    unsafe fn store_u8(self, p: *mut u8) {
        // SAFETY: `BitLanes::store_u8` is promised sixteen bytes.
        unsafe { _mm_storeu_si128(p.cast(), _mm512_cvtepi32_epi8(_mm512_castps_si512(self.0))) }
    }
}

const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// `c ? x : y`, bit by bit.
#[inline(always)]
unsafe fn ternary_choose(c: __m512i, x: __m512i, y: __m512i) -> __m512i {
    // SAFETY: used only where `launch` has enabled the instructions.
    unsafe { _mm512_ternarylogic_epi32::<0xca>(c, x, y) }
}
