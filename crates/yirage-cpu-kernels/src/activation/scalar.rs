//! Portable rounding and quantising of 32 activations: the definition.

use super::Meta;
use crate::pack::BLOCK;
use half::bf16;
use yirage_ir::activation::q8a::MOST;

/// Quantises 32 numbers to int8 with one scale.
///
/// # Safety
/// `src` is readable for 32 numbers, `codes` and `meta` are writable.
pub(super) unsafe fn quantize(src: *const f32, codes: *mut [i8; BLOCK], meta: *mut Meta) {
    // SAFETY: what `quantize` is promised; `ActivationBufferLayout::store` has checked the tokens.
    let x = unsafe { src.cast::<[f32; BLOCK]>().read_unaligned() };
    let finite = x.iter().all(|v| v.is_finite());
    let max_scale = x.iter().fold(0f32, |a, v| a.max(v.abs())) / f32::from(MOST);
    let inverse = if max_scale > 0.0 { 1.0 / max_scale } else { 0.0 };
    let q = x.map(|v| (v * inverse).round_ties_even().clamp(f32::from(-MOST), f32::from(MOST)) as i8);
    let first: i32 = q[..16].iter().map(|q| i32::from(*q)).sum();
    let sum = first + q[16..].iter().map(|q| i32::from(*q)).sum::<i32>();
    let scale = if finite { max_scale } else { f32::NAN };
    // SAFETY: what `quantize` is promised; `ActivationBufferLayout::store` has checked the tokens.
    unsafe {
        codes.write(q);
        meta.write_unaligned(Meta { scale, scaled_sum: scale * sum as f32, minus_sum: -sum, minus_first: -first });
    }
}

/// Rounds 32 numbers to bf16.
///
/// # Safety
/// `src` is readable and `dst` writable for 32 numbers.
pub(super) unsafe fn round(src: *const f32, dst: *mut u16) {
    // SAFETY: what `round` is promised; `ActivationBufferLayout::store` has checked the tokens.
    unsafe {
        let x = src.cast::<[f32; BLOCK]>().read_unaligned();
        dst.cast::<[u16; BLOCK]>().write_unaligned(x.map(|v| bf16::from_f32(v).to_bits()));
    }
}

/// Rounds 32 numbers to bf16 and stores them as f32.
///
/// # Safety
/// `src` is readable and `dst` writable for 32 numbers.
pub(super) unsafe fn round_wide(src: *const f32, dst: *mut f32) {
    // SAFETY: what `round_wide` is promised; `ActivationBufferLayout::store` has checked the tokens.
    unsafe {
        let x = src.cast::<[f32; BLOCK]>().read_unaligned();
        dst.cast::<[f32; BLOCK]>().write_unaligned(x.map(|v| bf16::from_f32(v).to_f32()));
    }
}
