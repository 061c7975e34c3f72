//! BF16 products at the level with matrix registers against the definition of `tdpbf16ps`, done one number at a time.

use crate::linear_support::*;
use half::bf16;
use yirage_cpu_kernels::isa::Isa;
use yirage_ir::Format;
use yirage_plan::Precision;

/// Subnormal numbers are zero, as factors and as results.
fn flushed(v: f32) -> f32 {
    if v.is_subnormal() { 0f32.copysign(v) } else { v }
}

/// 32 numbers at a time: two sums from zero, of the first numbers of the pairs and of the second, rounded once a product;
/// then both together, then that and what is there.
fn dot(w: &[bf16], x: &[bf16]) -> f32 {
    let at = |v: &[bf16], i: usize| v.get(i).map_or(0.0, |v| flushed(v.to_f32()));
    (0..w.len()).step_by(32).fold(0.0, |sum, block| {
        let half = |first: usize| {
            let numbers = (block + first..block + 32).step_by(2);
            numbers.fold(0f32, |sum, i| flushed(at(w, i).mul_add(at(x, i), sum)))
        };
        flushed(sum + flushed(half(0) + half(1)))
    })
}

#[test]
fn sums_of_both_halves_of_pairs_come_together_every_32_numbers() {
    if !Isa::Amx.available() {
        skipped::note("all of it", &format!("this processor has no {}, or the system does not grant it", Isa::Amx));
        return;
    }
    let mut rng = Rng::new(12);
    for (kind, k) in [(0, 768), (0, 33), (1, 2), (1, 100), (2, 64), (2, 7)] {
        let (rows, tokens) = (70, 55); // two tiles at once, one alone, a part of one
        let (w, x) = (bf16_numbers(&mut rng, kind, rows * k), bf16_numbers(&mut rng, kind, tokens * k));
        let bytes: Vec<u8> = w.iter().flat_map(|v| v.to_le_bytes()).collect();
        let x_f32: Vec<f32> = x.iter().map(|v| v.to_f32()).collect();
        let got = product(Isa::Amx, Precision::Fast, &packed(Format::BF16, rows, k, &bytes), &x_f32, tokens, 1);
        for (at, got) in got.iter().enumerate() {
            let (t, r) = (at / rows, at % rows);
            let want = dot(&w[r * k..][..k], &x[t * k..][..k]);
            let same = got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan();
            assert!(same, "kind {kind} k {k} token {t} row {r}: {got:e} for {want:e}");
        }
    }
}
