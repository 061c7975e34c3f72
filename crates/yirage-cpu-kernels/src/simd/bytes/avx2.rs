//! [`ByteLanes`] as two 256-bit registers: rows 0..8 and 8..16.

use super::super::avx2::Avx2;
use super::{ByteLanes, in_order};
use std::arch::x86_64::*;

/// Both halves of `$a`. A macro because a closure would not inherit "always inline".
macro_rules! both {
    ($v:ident in $a:expr => $e:expr) => {{
        let [lo, hi] = $a;
        [
            {
                let $v = lo;
                $e
            },
            {
                let $v = hi;
                $e
            },
        ]
    }};
}

// SAFETY of every block: the trait's contract gives the instruction set and the memory.
impl ByteLanes for Avx2 {
    type Bytes = [__m256i; 2];
    type Registers = [__m256; 2];

    #[inline(always)]
    fn from_registers([low, high]: [__m256; 2]) -> Self {
        Avx2(low, high)
    }
    #[inline(always)]
    fn registers(self) -> [__m256; 2] {
        [self.0, self.1]
    }
    #[inline(always)]
    unsafe fn load_bytes(p: *const u8) -> [__m256i; 2] {
        let first = unsafe { _mm256_loadu_si256(p.cast()) };
        in_order();
        let second = unsafe { _mm256_loadu_si256(p.add(32).cast()) };
        in_order();
        [first, second]
    }
    #[inline(always)]
    fn fetch(p: *const u8) {
        // SAFETY: a hint, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(p.cast()) }
    }
    #[inline(always)]
    unsafe fn store_bytes(p: *mut u8, v: [__m256i; 2]) {
        unsafe {
            _mm256_storeu_si256(p.cast(), v[0]);
            _mm256_storeu_si256(p.add(32).cast(), v[1]);
        }
    }
    #[inline(always)]
    unsafe fn words(rows: &[*const u8; 16], at: usize) -> [[__m256i; 2]; 4] {
        unsafe {
            // rows r and r + 4 in one register, so that turning 4 x 4 words inside 128 bits leaves rows in order
            let two = |r: usize| {
                let low = _mm256_castsi128_si256(_mm_loadu_si128(rows[r].add(at).cast()));
                _mm256_inserti128_si256::<1>(low, _mm_loadu_si128(rows[r + 4].add(at).cast()))
            };
            let [a, b] = both!(r in [0, 8] => {
                let (r0, r1, r2, r3) = (two(r), two(r + 1), two(r + 2), two(r + 3));
                let (a, b) = (_mm256_unpacklo_epi32(r0, r1), _mm256_unpacklo_epi32(r2, r3));
                let (c, d) = (_mm256_unpackhi_epi32(r0, r1), _mm256_unpackhi_epi32(r2, r3));
                [
                    _mm256_unpacklo_epi64(a, b),
                    _mm256_unpackhi_epi64(a, b),
                    _mm256_unpacklo_epi64(c, d),
                    _mm256_unpackhi_epi64(c, d),
                ]
            });
            [[a[0], b[0]], [a[1], b[1]], [a[2], b[2]], [a[3], b[3]]]
        }
    }
    #[inline(always)]
    unsafe fn flip(v: [__m256i; 2]) -> [__m256i; 2] {
        unsafe { both!(v in v => _mm256_xor_si256(v, _mm256_set1_epi8(-128))) }
    }
    #[inline(always)]
    unsafe fn field(v: [__m256i; 2], from: u32, width: u32, to: u32) -> [__m256i; 2] {
        unsafe {
            let count = _mm_cvtsi32_si128(from.abs_diff(to) as i32);
            let mask = _mm256_set1_epi8((((1u32 << width) - 1) << to) as i8);
            both!(v in v => {
                let moved = if from >= to { _mm256_srl_epi16(v, count) } else { _mm256_sll_epi16(v, count) };
                _mm256_and_si256(moved, mask)
            })
        }
    }
    #[inline(always)]
    unsafe fn or_bytes(a: [__m256i; 2], b: [__m256i; 2]) -> [__m256i; 2] {
        unsafe { [_mm256_or_si256(a[0], b[0]), _mm256_or_si256(a[1], b[1])] }
    }
    #[inline(always)]
    unsafe fn lookup(table: &[u8; 16], v: [__m256i; 2]) -> [__m256i; 2] {
        unsafe {
            let t = _mm256_broadcastsi128_si256(_mm_loadu_si128(table.as_ptr().cast()));
            [_mm256_shuffle_epi8(t, v[0]), _mm256_shuffle_epi8(t, v[1])]
        }
    }
    #[inline(always)]
    unsafe fn byte(v: [__m256i; 2], i: usize) -> Self {
        unsafe {
            let (count, mask) = (_mm_cvtsi32_si128(8 * i as i32), _mm256_set1_epi32(255));
            Self::from_registers(both!(v in v => {
                _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srl_epi32(v, count), mask))
            }))
        }
    }
    #[inline(always)]
    unsafe fn bf16(v: [__m256i; 2], i: usize) -> Self {
        unsafe {
            Self::from_registers(both!(v in v => _mm256_castsi256_ps(match i {
                0 => _mm256_slli_epi32::<16>(v),
                _ => _mm256_and_si256(v, _mm256_set1_epi32(0xffff_0000_u32 as i32)),
            })))
        }
    }
    #[inline(always)]
    unsafe fn load_f16_in_order(p: *const u8) -> Self {
        let first = unsafe { _mm_loadu_si128(p.cast()) };
        in_order();
        let second = unsafe { _mm_loadu_si128(p.add(16).cast()) };
        in_order();
        unsafe { Avx2(_mm256_cvtph_ps(first), _mm256_cvtph_ps(second)) }
    }
    #[inline(always)]
    unsafe fn load_in_order(p: *const f32) -> Self {
        let first = unsafe { _mm256_loadu_ps(p) };
        in_order();
        let second = unsafe { _mm256_loadu_ps(p.add(8)) };
        in_order();
        Avx2(first, second)
    }
}
