//! What follows the dot products of a block: scales and mins of 16 rows, scale and sums of a token.

use crate::activation::Meta;
use crate::pack::Codes;
use std::arch::asm;
use std::arch::x86_64::*;

/// A number in every row. LLVM would read neighbours together and then move each across the lanes.
#[target_feature(enable = "avx512f")]
#[inline]
fn broadcast(x: &f32) -> __m512 {
    let out: __m512;
    // SAFETY: reads the number it is given.
    unsafe {
        asm!("vbroadcastss {out}, dword ptr [{x}]", out = lateout(zmm_reg) out, x = in(reg) x,
            options(nostack, pure, readonly, preserves_flags));
    }
    out
}

/// `acc += dot * scale * activation scale (+ min * activation sum)` of a block with one scale.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn add<F: Codes>(acc: __m512, dot: __m512, scale: __m512, min: __m512, m: &Meta) -> __m512 {
    let scale = _mm512_mul_ps(scale, broadcast(&m.scale));
    let acc = _mm512_fmadd_ps(dot, scale, acc);
    if F::MINS { _mm512_fmadd_ps(min, broadcast(&m.scaled_sum), acc) } else { acc }
}

/// The same of a block with two scales.
#[target_feature(enable = "avx512f")]
#[inline]
pub(super) fn add_halves<F: Codes>(
    acc: __m512,
    dots: [__m512; 2],
    scales: [__m512; 2],
    mins: [__m512; 2],
    m: &Meta,
) -> __m512 {
    let v = _mm512_mul_ps(dots[0], scales[0]);
    let mut v = _mm512_fmadd_ps(dots[1], scales[1], v);
    if F::MINS {
        v = _mm512_fnmadd_ps(mins[0], _mm512_set1_ps(m.minus_first as f32), v);
        v = _mm512_fnmadd_ps(mins[1], _mm512_set1_ps((m.minus_sum - m.minus_first) as f32), v);
    }
    _mm512_fmadd_ps(v, broadcast(&m.scale), acc)
}
