//! BF16 products at the level with `bfdot` against the instruction's definition, done with f64.

use crate::linear_support::*;
use half::bf16;
use yirage_cpu_kernels::isa::Isa;
use yirage_ir::Format;
use yirage_plan::Precision;

/// `s + e` rounded to odd in f32, where `s` is the nearest f64 of the sum and `e` what is missing: cut off, the last bit
/// set if anything was. Results below the normal range are zero, beyond the range infinite.
fn round_to_odd(s: f64, e: f64) -> f32 {
    if s == 0.0 || !s.is_finite() {
        return s as f32;
    }
    let mut bits = s.to_bits();
    if e != 0.0 {
        // cut off at f64's last bit first: that keeps more than two bits beyond f32's
        bits -= u64::from(e.is_sign_negative() != s.is_sign_negative());
        bits |= 1;
    }
    let exact = f64::from_bits(bits);
    if exact.abs() < f64::from(f32::MIN_POSITIVE) {
        return f32::copysign(0.0, exact as f32);
    }
    if exact.abs() >= 2f64.powi(128) {
        return f32::copysign(f32::INFINITY, exact as f32);
    }
    let low = (1u64 << 29) - 1; // an f64 has 29 bits of fraction more
    let cut = f64::from_bits(bits & !low) as f32;
    f32::from_bits(cut.to_bits() | u32::from(bits & low != 0))
}

fn add(a: f32, b: f32) -> f32 {
    let (a, b) = (f64::from(a), f64::from(b));
    let s = a + b;
    // Knuth: the error of the sum, exactly
    let b_part = s - a;
    let e = (a - (s - b_part)) + (b - b_part);
    round_to_odd(s, if e.is_nan() { 0.0 } else { e })
}

/// Subnormal factors are zero; the product of two bf16 numbers is exact in f64.
fn mul(a: bf16, b: bf16) -> f32 {
    let flushed = |v: bf16| if v.is_normal() || !v.is_finite() { v.to_f64() } else { 0f64.copysign(v.to_f64()) };
    round_to_odd(flushed(a) * flushed(b), 0.0)
}

fn dot(w: &[bf16], x: &[bf16]) -> f32 {
    let pair = |i: usize| if i < w.len() { mul(w[i], x[i]) } else { 0.0 };
    // to the end of the packed unit: a sum of -0 becomes 0 there
    (0..w.len().next_multiple_of(32)).step_by(2).fold(0.0, |acc, i| add(acc, add(pair(i), pair(i + 1))))
}

#[test]
fn the_model_rounds_to_odd() {
    let tiny = 2f32.powi(-60);
    assert_eq!(add(1.0, 0.0), 1.0);
    assert_eq!(add(1.0, tiny).to_bits(), 1f32.to_bits() + 1);
    assert_eq!(add(1.0, -tiny).to_bits(), 1f32.to_bits() - 1);
    assert_eq!(add(-1.0, -tiny).to_bits(), (-1f32).to_bits() + 1);
    assert_eq!(add(1.0 + f32::EPSILON, tiny), 1.0 + f32::EPSILON);
    assert_eq!(add(1.0 + 2.0 * f32::EPSILON, -tiny), 1.0 + f32::EPSILON);
    assert_eq!(add(f32::MIN_POSITIVE, -1.5 * f32::MIN_POSITIVE).to_bits(), (-0f32).to_bits());
    assert_eq!(add(f32::MAX, f32::MAX), f32::INFINITY);
    assert_eq!(mul(bf16::from_f32(3.0), bf16::from_f32(-5.0)), -15.0);
    assert_eq!(mul(bf16::from_bits(1), bf16::MAX), 0.0);
}

#[test]
fn sums_are_rounded_to_odd_pair_by_pair() {
    if !Isa::NeonBf16.available() {
        skipped::note("all of it", &format!("this processor has no {}", Isa::NeonBf16));
        return;
    }
    let mut rng = Rng::new(11);
    for (kind, k) in [(0, 768), (0, 33), (1, 2), (1, 100), (2, 64), (2, 7)] {
        let (rows, tokens) = (70, 23); // 16 + 4 + 2 + 1
        let (w, x) = (bf16_numbers(&mut rng, kind, rows * k), bf16_numbers(&mut rng, kind, tokens * k));
        let bytes: Vec<u8> = w.iter().flat_map(|v| v.to_le_bytes()).collect();
        let x_f32: Vec<f32> = x.iter().map(|v| v.to_f32()).collect();
        let got = product(Isa::NeonBf16, Precision::Fast, &packed(Format::BF16, rows, k, &bytes), &x_f32, tokens, 1);
        for (at, got) in got.iter().enumerate() {
            let (t, r) = (at / rows, at % rows);
            let want = dot(&w[r * k..][..k], &x[t * k..][..k]);
            let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            assert!(same, "kind {kind} k {k} token {t} row {r}: {got:e} for {want:e}");
        }
    }
}
