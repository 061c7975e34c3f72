//! Words of four Advanced SIMD registers.

use super::BitLanes;
use crate::simd::neon::Neon;
use std::arch::aarch64::*;

/// An expression for each of the four registers. A macro because a closure would not inherit "always inline".
macro_rules! four {
    ($i:ident => $e:expr) => {{
        macro_rules! at {
            ($n:literal) => {{
                const $i: usize = $n;
                $e
            }};
        }
        // SAFETY: every AArch64 processor has Advanced SIMD; functions with addresses are promised them by `Lanes`.
        unsafe { [at!(0), at!(1), at!(2), at!(3)] }
    }};
}

/// An expression of words for each of the four registers.
macro_rules! words {
    ($i:ident => $e:expr) => {
        Neon(four!($i => vreinterpretq_f32_u32($e)))
    };
}

/// Four lanes as words.
#[inline(always)]
fn word(x: float32x4_t) -> uint32x4_t {
    // SAFETY: Advanced SIMD is there.
    unsafe { vreinterpretq_u32_f32(x) }
}

/// Four lanes as signed numbers.
#[inline(always)]
fn whole(x: float32x4_t) -> int32x4_t {
    // SAFETY: Advanced SIMD is there.
    unsafe { vreinterpretq_s32_f32(x) }
}

/// Four words of 16 bits of sixteen, wide.
#[inline(always)]
fn widened(x: uint16x8_t) -> [uint32x4_t; 2] {
    // SAFETY: Advanced SIMD is there.
    unsafe { [vmovl_u16(vget_low_u16(x)), vmovl_u16(vget_high_u16(x))] }
}

impl BitLanes for Neon {
    #[inline(always)]
    fn word(bits: u32) -> Self {
        words!(I => { let _ = I; vdupq_n_u32(bits) })
    }
    #[inline(always)]
    fn and(self, b: Self) -> Self {
        words!(I => vandq_u32(word(self.0[I]), word(b.0[I])))
    }
    #[inline(always)]
    fn or(self, b: Self) -> Self {
        words!(I => vorrq_u32(word(self.0[I]), word(b.0[I])))
    }
    #[inline(always)]
    fn xor(self, b: Self) -> Self {
        words!(I => veorq_u32(word(self.0[I]), word(b.0[I])))
    }
    #[inline(always)]
    fn shl<const N: u32>(self) -> Self {
        words!(I => vshlq_u32(word(self.0[I]), vdupq_n_s32(N as i32)))
    }
    #[inline(always)]
    fn shr<const N: u32>(self) -> Self {
        // A shift by less than nothing goes right.
        words!(I => vshlq_u32(word(self.0[I]), vdupq_n_s32(-(N as i32))))
    }
    #[inline(always)]
    fn wrapping_add(self, b: Self) -> Self {
        words!(I => vaddq_u32(word(self.0[I]), word(b.0[I])))
    }
    #[inline(always)]
    fn wrapping_sub(self, b: Self) -> Self {
        words!(I => vsubq_u32(word(self.0[I]), word(b.0[I])))
    }
    #[inline(always)]
    fn wrapping_mul(self, b: Self) -> Self {
        words!(I => vmulq_u32(word(self.0[I]), word(b.0[I])))
    }
    #[inline(always)]
    fn whole_less(self, b: Self) -> Self {
        words!(I => vcltq_s32(whole(self.0[I]), whole(b.0[I])))
    }
    #[inline(always)]
    fn whole_equal(self, b: Self) -> Self {
        words!(I => vceqq_u32(word(self.0[I]), word(b.0[I])))
    }
    #[inline(always)]
    fn less(self, b: Self) -> Self {
        words!(I => vcltq_f32(self.0[I], b.0[I]))
    }
    #[inline(always)]
    fn less_equal(self, b: Self) -> Self {
        words!(I => vcleq_f32(self.0[I], b.0[I]))
    }
    #[inline(always)]
    fn equal(self, b: Self) -> Self {
        words!(I => vceqq_f32(self.0[I], b.0[I]))
    }
    #[inline(always)]
    fn choose(self, x: Self, y: Self) -> Self {
        Neon(four!(I => vbslq_f32(word(self.0[I]), x.0[I], y.0[I])))
    }
    #[inline(always)]
    fn floats(self) -> Self {
        Neon(four!(I => vcvtq_f32_s32(whole(self.0[I]))))
    }
    #[inline(always)]
    fn cut(self) -> Self {
        Neon(four!(I => vreinterpretq_f32_s32(vcvtq_s32_f32(self.0[I]))))
    }
    #[inline(always)]
    fn halves(self) -> Self {
        Neon(four!(I => vcvt_f32_f16(vcvt_f16_f32(self.0[I]))))
    }
    #[inline(always)]
    unsafe fn store_f16(self, p: *mut u16) {
        four!(I => vst1_u16(p.add(4 * I), vreinterpret_u16_f16(vcvt_f16_f32(self.0[I]))));
    }
    #[inline(always)]
    unsafe fn load_u16(p: *const u16) -> Self {
        words!(I => vmovl_u16(vld1_u16(p.add(4 * I))))
    }
    #[inline(always)]
    unsafe fn store_u16(self, p: *mut u16) {
        four!(I => vst1_u16(p.add(4 * I), vmovn_u32(word(self.0[I]))));
    }
    #[inline(always)]
    unsafe fn load_u8(p: *const u8) -> Self {
        // SAFETY: `BitLanes::load_u8` is promised sixteen bytes.
        let (low, high) = unsafe {
            let bytes = vld1q_u8(p);
            (vmovl_u8(vget_low_u8(bytes)), vmovl_u8(vget_high_u8(bytes)))
        };
        let ([a, b], [c, d]) = (widened(low), widened(high));
        let all = [a, b, c, d];
        words!(I => all[I])
    }
    #[inline(always)]
    unsafe fn store_u8(self, p: *mut u8) {
        let [a, b, c, d] = four!(I => vmovn_u32(word(self.0[I])));
        // SAFETY: `BitLanes::store_u8` is promised sixteen bytes.
        unsafe {
            vst1_u8(p, vmovn_u16(vcombine_u16(a, b)));
            vst1_u8(p.add(8), vmovn_u16(vcombine_u16(c, d)));
        }
    }
}
