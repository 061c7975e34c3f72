//! Lanes as four Advanced SIMD registers.
//!
//! Advanced SIMD is part of every AArch64 processor that Rust's targets name, so no instruction here has to be enabled.
//! `fmax` and `fmin` give NaN for NaN, unlike the trait's `max` and `min`: those are a comparison and a choice.

use super::{ByteLanes as _, LANES, Lanes, WithLanes};
use std::arch::aarch64::*;

/// Lanes 0 to 3, 4 to 7, 8 to 11, 12 to 15.
#[derive(Clone, Copy)]
pub(crate) struct Neon(pub(super) [float32x4_t; 4]);

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
        unsafe { Neon([at!(0), at!(1), at!(2), at!(3)]) }
    }};
}

/// The window of sixteen words from `16 - n` on has its first `n` words set.
static FIRST: [u32; 2 * LANES] = {
    let mut words = [0; 2 * LANES];
    let mut i = 0;
    while i < LANES {
        words[i] = u32::MAX;
        i += 1;
    }
    words
};

/// `a > b ? a : b`.
#[inline(always)]
fn larger(a: float32x4_t, b: float32x4_t) -> float32x4_t {
    // SAFETY: Advanced SIMD is there.
    unsafe { vbslq_f32(vcgtq_f32(a, b), a, b) }
}

/// Four integers as floats.
#[inline(always)]
fn floats(x: int16x4_t) -> float32x4_t {
    // SAFETY: Advanced SIMD is there.
    unsafe { vcvtq_f32_s32(vmovl_s16(x)) }
}

impl Lanes for Neon {
    // Two vectors of keys, the weight and four rows are 26 of 32 registers.
    const ROWS: usize = 4;
    const WIDE: bool = false;

    #[inline(always)]
    fn splat(x: f32) -> Self {
        // SAFETY: Advanced SIMD is there.
        Neon(unsafe { [vdupq_n_f32(x); 4] })
    }
    #[inline(always)]
    unsafe fn load(p: *const f32) -> Self {
        four!(I => vld1q_f32(p.add(4 * I)))
    }
    #[inline(always)]
    unsafe fn store(self, p: *mut f32) {
        for (i, v) in self.0.into_iter().enumerate() {
            // SAFETY: `Lanes::store` is promised sixteen floats.
            unsafe { vst1q_f32(p.add(4 * i), v) };
        }
    }
    #[inline(always)]
    unsafe fn stream(self, p: *mut f32) {
        // SAFETY: `Lanes::stream` is promised sixteen floats.
        unsafe { self.store(p) }
    }
    #[inline(always)]
    unsafe fn load_f16(p: *const u16) -> Self {
        four!(I => vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p.add(4 * I)))))
    }
    #[inline(always)]
    unsafe fn turn(rows: &[*const f32; LANES]) -> [Self; 4] {
        // SAFETY: `Lanes::turn` is promised four values of each row.
        unsafe {
            let words = Self::words(&rows.map(|row| row.cast()), 0);
            words.map(|v| Neon(v.map(|part| vreinterpretq_f32_u8(part))))
        }
    }
    #[inline(always)]
    unsafe fn load_i8(p: *const i8) -> Self {
        // SAFETY: `Lanes::load_i8` is promised sixteen bytes.
        unsafe {
            let bytes = vld1q_s8(p);
            let (low, high) = (vmovl_s8(vget_low_s8(bytes)), vmovl_s8(vget_high_s8(bytes)));
            Neon([
                floats(vget_low_s16(low)),
                floats(vget_high_s16(low)),
                floats(vget_low_s16(high)),
                floats(vget_high_s16(high)),
            ])
        }
    }
    #[inline(always)]
    unsafe fn load_bf16_pairs(p: *const u16) -> (Self, Self) {
        let even = four!(I => vreinterpretq_f32_u32(vshlq_n_u32::<16>(vld1q_u32(p.cast::<u32>().add(4 * I)))));
        let high = 0xffff_0000;
        let odd =
            four!(I => vreinterpretq_f32_u32(vandq_u32(vld1q_u32(p.cast::<u32>().add(4 * I)), vdupq_n_u32(high))));
        (even, odd)
    }
    #[inline(always)]
    fn add(self, b: Self) -> Self {
        four!(I => vaddq_f32(self.0[I], b.0[I]))
    }
    #[inline(always)]
    fn sub(self, b: Self) -> Self {
        four!(I => vsubq_f32(self.0[I], b.0[I]))
    }
    #[inline(always)]
    fn mul(self, b: Self) -> Self {
        four!(I => vmulq_f32(self.0[I], b.0[I]))
    }
    #[inline(always)]
    fn div(self, b: Self) -> Self {
        four!(I => vdivq_f32(self.0[I], b.0[I]))
    }
    #[inline(always)]
    fn fma(self, b: Self, c: Self) -> Self {
        four!(I => vfmaq_f32(c.0[I], self.0[I], b.0[I]))
    }
    #[inline(always)]
    fn max(self, b: Self) -> Self {
        let ([a0, a1, a2, a3], [b0, b1, b2, b3]) = (self.0, b.0);
        Neon([larger(a0, b0), larger(a1, b1), larger(a2, b2), larger(a3, b3)])
    }
    #[inline(always)]
    fn min(self, b: Self) -> Self {
        four!(I => vbslq_f32(vcltq_f32(self.0[I], b.0[I]), self.0[I], b.0[I]))
    }
    #[inline(always)]
    fn round(self) -> Self {
        four!(I => vrndnq_f32(self.0[I]))
    }
    #[inline(always)]
    fn pow2(self) -> Self {
        four!(I => {
            let biased = vaddq_s32(vcvtq_s32_f32(self.0[I]), vdupq_n_s32(127));
            vreinterpretq_f32_s32(vshlq_n_s32::<23>(biased))
        })
    }
    #[inline(always)]
    fn abs(self) -> Self {
        four!(I => vabsq_f32(self.0[I]))
    }
    #[inline(always)]
    fn sqrt(self) -> Self {
        four!(I => vsqrtq_f32(self.0[I]))
    }
    #[inline(always)]
    fn with_sign(self, sign: Self) -> Self {
        four!(I => vbslq_f32(vdupq_n_u32(1 << 31), sign.0[I], self.0[I]))
    }
    #[inline(always)]
    fn if_less(self, b: Self, x: Self, y: Self) -> Self {
        four!(I => vbslq_f32(vcltq_f32(self.0[I], b.0[I]), x.0[I], y.0[I]))
    }
    #[inline(always)]
    fn keep(self, from: usize, to: usize, other: Self) -> Self {
        let (from, to) = (&FIRST[LANES - from.min(LANES)..][..LANES], &FIRST[LANES - to.min(LANES)..][..LANES]);
        four!(I => {
            let (before, until) = (vld1q_u32(from.as_ptr().add(4 * I)), vld1q_u32(to.as_ptr().add(4 * I)));
            vbslq_f32(vbicq_u32(until, before), self.0[I], other.0[I])
        })
    }
    #[inline(always)]
    fn any_greater(self, b: Self) -> bool {
        // SAFETY: Advanced SIMD is there.
        unsafe {
            let m: [uint32x4_t; 4] = std::array::from_fn(|i| vcgtq_f32(self.0[i], b.0[i]));
            vmaxvq_u32(vorrq_u32(vorrq_u32(m[0], m[1]), vorrq_u32(m[2], m[3]))) != 0
        }
    }
    #[inline(always)]
    fn any_nan(self) -> bool {
        // SAFETY: Advanced SIMD is there.
        unsafe {
            // A lane equals itself unless it is NaN.
            let m: [uint32x4_t; 4] = std::array::from_fn(|i| vceqq_f32(self.0[i], self.0[i]));
            vminvq_u32(vandq_u32(vandq_u32(m[0], m[1]), vandq_u32(m[2], m[3]))) == 0
        }
    }
    #[inline(always)]
    fn sum(self) -> f32 {
        let [a, b, c, d] = self.0;
        // SAFETY: Advanced SIMD is there.
        unsafe {
            let v = vaddq_f32(vaddq_f32(a, c), vaddq_f32(b, d));
            let v = vadd_f32(vget_low_f32(v), vget_high_f32(v));
            vget_lane_f32::<0>(v) + vget_lane_f32::<1>(v)
        }
    }
    #[inline(always)]
    fn largest(self) -> f32 {
        let [a, b, c, d] = self.0;
        // SAFETY: Advanced SIMD is there.
        unsafe {
            let v = larger(larger(a, c), larger(b, d));
            let (low, high) = (vget_low_f32(v), vget_high_f32(v));
            let v = vbsl_f32(vcgt_f32(low, high), low, high);
            let (low, high) = (vget_lane_f32::<0>(v), vget_lane_f32::<1>(v));
            if low > high { low } else { high }
        }
    }
    #[inline(always)]
    unsafe fn apart<K: WithLanes>(kernel: K) -> K::Out {
        // SAFETY: `run_everywhere` wants what `Lanes::apart` is promised.
        unsafe { super::run_everywhere::<Self, K>(kernel) }
    }
}
