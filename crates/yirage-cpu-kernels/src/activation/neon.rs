//! Quantising 32 activations with Advanced SIMD; bit for bit what the portable version does.

use super::Meta;
use crate::pack::BLOCK;
use std::arch::aarch64::*;
use std::array::from_fn;
use yirage_ir::activation::q8a::MOST;

/// Quantises 32 numbers to int8 with one scale.
///
/// # Safety
/// `src` is readable for 32 numbers, `codes` and `meta` are writable.
pub(super) unsafe fn quantize(src: *const f32, codes: *mut [i8; BLOCK], meta: *mut Meta) {
    // SAFETY: what `quantize` is promised; every AArch64 processor has the instructions;
    // `ActivationBufferLayout::store` has checked the tokens.
    unsafe {
        let x: [float32x4_t; 8] = from_fn(|i| vld1q_f32(src.add(4 * i)));
        let sizes = x.map(|v| vabsq_f32(v));
        let finite = sizes.map(|v| vcltq_f32(v, vdupq_n_f32(f32::INFINITY)));
        // NaN becomes 0: `fmaxnm` alone passes over quiet NaN only
        let numbers = sizes.map(|v| vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(v), vceqq_f32(v, v))));
        let scale = vmaxvq_f32(tree(numbers, |a, b| vmaxq_f32(a, b))) / f32::from(MOST);
        let inverse = vdupq_n_f32(if scale > 0.0 { 1.0 / scale } else { 0.0 });
        let q = x.map(|v| {
            let v = vmulq_f32(v, inverse);
            // to the nearest, ties to even; NaN becomes 0, what is too large the largest integer
            let q = vcvtnq_s32_f32(v);
            vmaxq_s32(vminq_s32(q, vdupq_n_s32(MOST.into())), vdupq_n_s32((-MOST).into()))
        });
        let narrow = |i: usize| vcombine_s16(vmovn_s32(q[i]), vmovn_s32(q[i + 1]));
        let bytes = |i: usize| vcombine_s8(vmovn_s16(narrow(i)), vmovn_s16(narrow(i + 2)));
        let (low, high) = (bytes(0), bytes(4));
        let first = i32::from(vaddlvq_s8(low));
        let sum = first + i32::from(vaddlvq_s8(high));
        let scale = if vminvq_u32(tree(finite, |a, b| vandq_u32(a, b))) == u32::MAX { scale } else { f32::NAN };
        vst1q_s8(codes.cast(), low);
        vst1q_s8(codes.cast::<i8>().add(BLOCK / 2), high);
        meta.write_unaligned(Meta { scale, scaled_sum: scale * sum as f32, minus_sum: -sum, minus_first: -first });
    }
}

/// The eight joined by `f` in three levels.
#[inline(always)]
fn tree<V: Copy>(v: [V; 8], f: impl Fn(V, V) -> V) -> V {
    f(f(f(v[0], v[4]), f(v[2], v[6])), f(f(v[1], v[5]), f(v[3], v[7])))
}
