//! [`ByteLanes`] as one 512-bit register.

use super::super::avx512::Avx512;
use super::{ByteLanes, in_order};
use std::arch::x86_64::*;

// SAFETY of every block: the trait's contract gives the instruction set and the memory.
impl ByteLanes for Avx512 {
    type Bytes = __m512i;
    type Registers = __m512;
    const TOKENS: usize = 16;

    #[inline(always)]
    fn from_registers(register: __m512) -> Self {
        Avx512(register)
    }
    #[inline(always)]
    fn registers(self) -> __m512 {
        self.0
    }
    #[inline(always)]
    fn fetch(p: *const u8) {
        // SAFETY: a hint about any address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }

    #[inline(always)]
    unsafe fn load_bytes(p: *const u8) -> __m512i {
        let v = unsafe { _mm512_loadu_si512(p.cast()) };
        in_order();
        v
    }
    #[inline(always)]
    unsafe fn store_bytes(p: *mut u8, v: __m512i) {
        unsafe { _mm512_storeu_si512(p.cast(), v) }
    }
    #[inline(always)]
    unsafe fn words(rows: &[*const u8; 16], at: usize) -> [__m512i; 4] {
        unsafe {
            // rows r, r + 4, r + 8 and r + 12 in one register, so that turning 4 x 4 words inside 128 bits leaves rows
            // in order
            let four = |r: usize| {
                let part = |r: usize| _mm_loadu_si128(rows[r].add(at).cast());
                let v = _mm512_castsi128_si512(part(r));
                let v = _mm512_inserti32x4::<1>(v, part(r + 4));
                let v = _mm512_inserti32x4::<2>(v, part(r + 8));
                _mm512_inserti32x4::<3>(v, part(r + 12))
            };
            let (r0, r1, r2, r3) = (four(0), four(1), four(2), four(3));
            let (a, b) = (_mm512_unpacklo_epi32(r0, r1), _mm512_unpacklo_epi32(r2, r3));
            let (c, d) = (_mm512_unpackhi_epi32(r0, r1), _mm512_unpackhi_epi32(r2, r3));
            [
                _mm512_unpacklo_epi64(a, b),
                _mm512_unpackhi_epi64(a, b),
                _mm512_unpacklo_epi64(c, d),
                _mm512_unpackhi_epi64(c, d),
            ]
        }
    }
    #[inline(always)]
    unsafe fn flip(v: __m512i) -> __m512i {
        unsafe { _mm512_xor_si512(v, _mm512_set1_epi8(-128)) }
    }
    #[inline(always)]
    unsafe fn field(v: __m512i, from: u32, width: u32, to: u32) -> __m512i {
        unsafe {
            let count = _mm_cvtsi32_si128(from.abs_diff(to) as i32);
            let moved = if from >= to { _mm512_srl_epi16(v, count) } else { _mm512_sll_epi16(v, count) };
            _mm512_and_si512(moved, _mm512_set1_epi8((((1u32 << width) - 1) << to) as i8))
        }
    }
    #[inline(always)]
    unsafe fn or_bytes(a: __m512i, b: __m512i) -> __m512i {
        unsafe { _mm512_or_si512(a, b) }
    }
    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], v: __m512i) -> __m512i {
        unsafe { _mm512_shuffle_epi8(_mm512_broadcast_i32x4(_mm_loadu_si128(table.as_ptr().cast())), v) }
    }
    #[inline(always)]
    unsafe fn byte(v: __m512i, i: usize) -> Self {
        unsafe {
            let moved = _mm512_srl_epi32(v, _mm_cvtsi32_si128(8 * i as i32));
            Avx512(_mm512_cvtepi32_ps(_mm512_and_si512(moved, _mm512_set1_epi32(255))))
        }
    }
    #[inline(always)]
    unsafe fn bf16(v: __m512i, i: usize) -> Self {
        unsafe {
            Avx512(_mm512_castsi512_ps(match i {
                0 => _mm512_slli_epi32::<16>(v),
                _ => _mm512_and_si512(v, _mm512_set1_epi32(0xffff_0000_u32 as i32)),
            }))
        }
    }
    #[inline(always)]
    unsafe fn load_f16_in_order(p: *const u8) -> Self {
        let v = unsafe { _mm256_loadu_si256(p.cast()) };
        in_order();
        unsafe { Avx512(_mm512_cvtph_ps(v)) }
    }
    #[inline(always)]
    unsafe fn load_in_order(p: *const f32) -> Self {
        let v = unsafe { _mm512_loadu_ps(p) };
        in_order();
        Avx512(v)
    }
}
