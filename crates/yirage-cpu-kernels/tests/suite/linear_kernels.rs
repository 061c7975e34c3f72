//! Matrix kernels against f64 sums, against each other, and against themselves in other batches.

use crate::linear_support::*;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use yirage_cpu_kernels::activation::{ActivationBufferLayout, ActivationEncoding};
use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::linear::{Dispatch, Linear, MatmulVariant, linear};
use yirage_cpu_kernels::pack::PackedMatrix;
use yirage_ir::Format;
use yirage_plan::Precision;

const BOTH: [Precision; 2] = [Precision::Fast, Precision::Exact];
/// Allowed error in units of f32::EPSILON * sum |w x|. Up to 24 block sums (fast) or 768 products (exact) are added
/// one after the other, each to half an epsilon of the sum so far, which is the square root of the sum of squares
/// for random signs: far below this.
const C: f64 = 16.0;

/// The activations a kernel really sees.
fn seen(form: ActivationEncoding, x: &[f32], tokens: usize, k: usize) -> Vec<f32> {
    match form {
        ActivationEncoding::F32 => x.to_vec(),
        ActivationEncoding::Bf16 | ActivationEncoding::RoundedF32 => {
            x.iter().map(|v| half::bf16::from_f32(*v).to_f32()).collect()
        }
        ActivationEncoding::Q8 => {
            let layout = ActivationBufferLayout::new(form, tokens, k);
            let out = stored(Isa::Scalar, layout, x);
            let mut seen = Vec::new();
            for t in 0..tokens {
                for b in 0..k / 32 {
                    let (scale, codes, outliers) = layout.quantized(&out, t, b).unwrap();
                    seen.extend(codes.iter().zip(outliers).map(|(c, o)| scale * *c as i8 as f32 + o));
                }
            }
            seen
        }
    }
}

#[test]
fn every_kernel_is_near_the_f64_sum() {
    let mut rng = Rng::new(3);
    for &format in Format::ALL {
        for &k in ks(format) {
            let (rows, tokens) = (83, 19);
            let bytes = weights(&mut rng, format, rows, k);
            let (m, w) = (packed(format, rows, k, &bytes), decoded(format, rows, k, &bytes));
            let mut x = floats(&mut rng, tokens * k);
            x.iter_mut().step_by(53).for_each(|v| *v *= 20.0);
            x[..k.min(32)].fill(0.0);
            for (isa, precision) in isas().into_iter().flat_map(|i| BOTH.map(|p| (i, p))) {
                let form = Dispatch::new(isa, MatmulVariant::of_level(isa), precision, format).unwrap().form();
                let (x_seen, got) = (seen(form, &x, tokens, k), product(isa, precision, &m, &x, tokens, 1));
                for (at, got) in got.iter().enumerate() {
                    let terms = w[at % rows * k..][..k].iter().zip(&x_seen[at / rows * k..][..k]);
                    let terms: Vec<f64> = terms.map(|(w, x)| f64::from(*w) * f64::from(*x)).collect();
                    let (want, size) = (terms.iter().sum::<f64>(), terms.iter().map(|t| t.abs()).sum::<f64>());
                    let error = (f64::from(*got) - want).abs();
                    assert!(
                        error <= C * f64::from(f32::EPSILON) * size,
                        "{format:?} {isa} {precision:?} k {k} at {at}: {got} for {want}, size {size}"
                    );
                }
            }
        }
    }
}

#[test]
fn exact_kernels_are_the_plain_loop() {
    let mut rng = Rng::new(4);
    for &format in Format::ALL {
        let (rows, tokens, k) = (20, 3, *ks(format).last().unwrap());
        let bytes = weights(&mut rng, format, rows, k);
        let (m, w) = (packed(format, rows, k, &bytes), decoded(format, rows, k, &bytes));
        let x = floats(&mut rng, tokens * k);
        let plain = |t: usize, r: usize| (0..k).fold(0f32, |a, i| w[r * k + i].mul_add(x[t * k + i], a));
        let want: Vec<f32> = (0..tokens * rows).map(|at| plain(at / rows, at % rows)).collect();
        for isa in isas() {
            assert_eq!(bits(&product(isa, Precision::Exact, &m, &x, tokens, 1)), bits(&want), "{format:?} {isa}");
        }
    }
}

#[test]
fn all_instruction_sets_agree_bit_for_bit() {
    let mut rng = Rng::new(5);
    for &format in Format::ALL {
        let (rows, tokens, k) = (130, 91, *ks(format).last().unwrap());
        let m = packed(format, rows, k, &weights(&mut rng, format, rows, k));
        let mut x = floats(&mut rng, tokens * k);
        x.iter_mut().step_by(331).for_each(|v| *v *= 30.0); // some blocks with outliers
        let want = bits(&product(Isa::Scalar, Precision::Fast, &m, &x, tokens, 1));
        for isa in isas() {
            if Dispatch::new(isa, MatmulVariant::of_level(isa), Precision::Fast, format).unwrap().form()
                != ActivationEncoding::Bf16
            {
                assert_eq!(bits(&product(isa, Precision::Fast, &m, &x, tokens, 1)), want, "{format:?} {isa}");
            }
        }
    }
}

#[test]
fn a_row_does_not_depend_on_its_batch_or_on_the_split() {
    // Side by side: one thread alone takes minutes under emulation.
    std::thread::scope(|scope| {
        for (seed, &format) in (6..).zip(Format::ALL) {
            scope.spawn(move || rows_do_not_depend_on_their_batch(Rng::new(seed), format));
        }
    });
}

fn rows_do_not_depend_on_their_batch(mut rng: Rng, format: Format) {
    let total = 150; // more full tiles than meet a piece of decoded weights at once
    let (rows, k) = (150, *ks(format).last().unwrap());
    let m = packed(format, rows, k, &weights(&mut rng, format, rows, k));
    let mut x = floats(&mut rng, total * k);
    x.iter_mut().step_by(331).for_each(|v| *v *= 30.0); // some blocks with outliers
    for (isa, precision) in isas().into_iter().flat_map(|i| BOTH.map(|p| (i, p))) {
        let all = bits(&product(isa, precision, &m, &x, total, 1));
        for n in (1..=17).chain([33, 64, 100, 130]) {
            let first = (total - n) / 2;
            let part = product(isa, precision, &m, &x[first * k..][..n * k], n, 1 + n % 3);
            assert_eq!(bits(&part), all[first * rows..][..n * rows], "{format:?} {isa} {precision:?} {n} tokens");
        }
    }
}

#[test]
fn int8_activations_lose_little() {
    let mut rng = Rng::new(7);
    for &format in Format::ALL {
        let (rows, tokens, k) = (64, 8, 768);
        let m = packed(format, rows, k, &weights(&mut rng, format, rows, k));
        let x = floats(&mut rng, tokens * k);
        let isa = Isa::detect();
        let [fast, exact] = BOTH.map(|p| product(isa, p, &m, &x, tokens, 1));
        let error: f64 = fast.iter().zip(&exact).map(|(a, b)| f64::from(a - b).powi(2)).sum();
        let power: f64 = exact.iter().map(|b| f64::from(*b).powi(2)).sum();
        assert!(error <= 5e-4 * power, "{format:?}: {}", error / power);
    }
}

/// Odd row counts, a wide result matrix, a stack of matrices, and results in places of their own.
#[test]
fn only_the_rows_that_exist_are_written() {
    let mut rng = Rng::new(8);
    for format in [Format::Q8_0, Format::Q4_1, Format::F32, Format::BF16, Format::IQ4_NL] {
        for (isa, precision) in isas().into_iter().flat_map(|i| BOTH.map(|p| (i, p))) {
            for (rows, tokens) in [1, 15, 16, 17, 63, 64, 65, 150].into_iter().flat_map(|r| [(r, 5), (r, 37)]) {
                let (count, k, ldo) = (2, 96, rows + 3);
                let row_bytes = format.info().row_bytes(k);
                let bytes = weights(&mut rng, format, count * rows, k);
                let m = PackedMatrix::stacked(format, count, rows, k).unwrap();
                for e in 0..count {
                    unsafe { m.pack_rows(isa, e, 0, &bytes[e * rows * row_bytes..][..rows * row_bytes]).unwrap() };
                }
                let kernel = Dispatch::new(isa, MatmulVariant::of_level(isa), precision, format).unwrap();
                let layout = kernel.layout(tokens, k);
                let x = floats(&mut rng, tokens * k);
                let activations = stored(isa, layout, &x);
                let single = packed(format, rows, k, &bytes[rows * row_bytes..]);
                let want = product(isa, precision, &single, &x, tokens, 1);
                let turned: Vec<u32> = (0..tokens as u32).rev().collect();
                for places in [None, Some(&turned)] {
                    let before = floats(&mut rng, tokens * ldo);
                    let mut out = before.clone();
                    let job = Linear {
                        kernel: &kernel,
                        weights: &m,
                        matrix: 1,
                        layout,
                        activations: activations.as_ptr(),
                        out: out.as_mut_ptr(),
                        ldo,
                        rows: places.map(Vec::as_slice),
                    };
                    unsafe { linear(&job, 0..m.panels(), 0..tokens) };
                    for t in 0..tokens {
                        for c in 0..ldo {
                            let at = places.map_or(t, |p| p[t] as usize) * ldo + c;
                            let want = if c < rows { want[t * rows + c] } else { before[at] };
                            assert_eq!(out[at].to_bits(), want.to_bits(), "{format:?} {isa} {rows} rows, {t} {c}");
                        }
                    }
                }
            }
        }
    }
}

/// Whether these panels and tokens of a product are refused.
fn refused(
    kernel: &Dispatch,
    m: &PackedMatrix,
    layout: ActivationBufferLayout,
    activations: &[u8],
    (panels, tokens): (Range<usize>, Range<usize>),
) -> bool {
    let mut out = vec![0f32; layout.tokens() * m.rows()];
    let job = Linear {
        kernel,
        weights: m,
        matrix: 0,
        layout,
        activations: activations.as_ptr(),
        out: out.as_mut_ptr(),
        ldo: m.rows(),
        rows: None,
    };
    catch_unwind(AssertUnwindSafe(|| unsafe { linear(&job, panels, tokens) })).is_err()
}

/// What a call writes beyond panels and tokens that exist would be somebody else's.
#[test]
fn parts_that_do_not_exist_are_refused() {
    let mut rng = Rng::new(12);
    let (format, rows, tokens, k) = (Format::Q8_0, 130, 37, 64);
    let m = packed(format, rows, k, &weights(&mut rng, format, rows, k));
    let kernel = Dispatch::new(Isa::Scalar, MatmulVariant::of_level(Isa::Scalar), Precision::Fast, format).unwrap();
    let layout = kernel.layout(tokens, k);
    let activations = stored(Isa::Scalar, layout, &floats(&mut rng, tokens * k));
    let refused = |panels, tokens| refused(&kernel, &m, layout, &activations, (panels, tokens));
    assert!(!refused(0..3, 0..37) && !refused(1..2, 16..32) && !refused(0..3, 32..37) && !refused(1..1, 16..16));
    for (panels, tokens) in [(0..4, 0..37), (0..3, 0..38), (0..3, 0..48), (0..3, 8..37), (0..3, 0..24), (0..3, 32..36)]
    {
        assert!(refused(panels.clone(), tokens.clone()), "panels {panels:?}, tokens {tokens:?}");
    }
}

#[test]
fn activations_that_are_no_numbers_reach_the_result() {
    let mut rng = Rng::new(9);
    for &format in Format::ALL {
        let (rows, tokens, k) = (20, 18, 256);
        let m = packed(format, rows, k, &weights(&mut rng, format, rows, k));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut x = floats(&mut rng, tokens * k);
            x[7 * k + 100] = bad;
            x[17 * k] = bad;
            for (isa, precision) in isas().into_iter().flat_map(|i| BOTH.map(|p| (i, p))) {
                for (at, v) in product(isa, precision, &m, &x, tokens, 1).iter().enumerate() {
                    let hit = matches!(at / rows, 7 | 17);
                    assert!(!(hit && v.is_finite()), "{format:?} {isa} {precision:?}: {bad} vanished at {at}");
                    assert!(hit || v.is_finite(), "{format:?} {isa} {precision:?}: {bad} spread to {at}");
                }
            }
        }
    }
}

#[test]
fn activations_of_zeros_or_tiny_numbers_stay_finite() {
    let mut rng = Rng::new(10);
    for &format in Format::ALL {
        let (rows, tokens, k) = (20, 3, 256);
        let m = packed(format, rows, k, &weights(&mut rng, format, rows, k));
        let mut x = vec![0f32; tokens * k];
        x[k..2 * k].fill(1e-42);
        x[2 * k..].fill(1e30);
        for (isa, precision) in isas().into_iter().flat_map(|i| BOTH.map(|p| (i, p))) {
            let got = product(isa, precision, &m, &x, tokens, 1);
            assert!(got.iter().all(|v| v.is_finite()), "{format:?} {isa} {precision:?}");
            assert!(got[..rows].iter().all(|v| *v == 0.0), "{format:?} {isa} {precision:?}");
        }
    }
}

/// Kernels for many tokens may not go about scales in a way that shows where they are at the end of their range.
#[test]
fn scales_of_any_size_give_the_same_bytes_in_any_batch() {
    let mut rng = Rng::new(13);
    let tokens = 4 * 64;
    for &format in Format::ALL {
        let (rows, k) = (70, *ks(format).last().unwrap());
        let m = packed(format, rows, k, &weights(&mut rng, format, rows, k));
        let mut x = floats(&mut rng, tokens * k);
        for (token, x) in x.chunks_exact_mut(k).enumerate() {
            // the second 64 tokens are ordinary, the last are not but for a block
            let size = match token / 64 {
                0 => 10f32.powi(token as i32 - 36),
                1 => 1.0,
                2 => 2f32.powi(2 * token as i32 - 383),
                _ => f32::MIN_POSITIVE,
            };
            x.iter_mut().for_each(|v| *v *= size);
            x[..32].iter_mut().for_each(|v| *v /= size.clamp(1e-30, 1.0));
        }
        x[5 * k + 40] = f32::NAN;
        x[200 * k + 40] = f32::INFINITY;
        let numbers = |out: Vec<f32>| -> Vec<u32> {
            out.into_iter().map(|v| if v.is_nan() { f32::NAN.to_bits() } else { v.to_bits() }).collect()
        };
        for isa in isas() {
            let all = numbers(product(isa, Precision::Fast, &m, &x, tokens, 1));
            for (token, x) in x.chunks_exact(k).enumerate() {
                let alone = numbers(product(isa, Precision::Fast, &m, x, 1, 1));
                assert_eq!(alone, all[token * rows..][..rows], "{format:?} {isa} token {token}");
            }
        }
    }
}

/// Without them the kernel would read what nobody wrote.
#[test]
fn activations_without_pairs_are_refused_by_the_kernel_that_reads_them() {
    let Some(isa) = isas().into_iter().find(|isa| matches!(isa, Isa::Avx512 | Isa::Avx512Bf16 | Isa::Amx)) else {
        skipped::note("all of it", "this processor has no AVX-512");
        return;
    };
    let mut rng = Rng::new(13);
    let (format, rows, tokens, k) = (Format::Q4_0, 64, 64, 64);
    let m = packed(format, rows, k, &weights(&mut rng, format, rows, k));
    let x = floats(&mut rng, tokens * k);
    let refused_by = |many: &str, pairs: bool| {
        let variant = MatmulVariant::of_level(isa).with(many).unwrap();
        let kernel = Dispatch::new(isa, variant, Precision::Fast, format).unwrap();
        let layout = ActivationBufferLayout::new(kernel.form(), tokens, k).with_pairs(pairs);
        let activations = stored(isa, layout, &x);
        refused(&kernel, &m, layout, &activations, (0..1, 0..tokens))
    };
    assert!(refused_by("many=winograd", false));
    assert!(!refused_by("many=winograd", true) && !refused_by("many=pairs", false));
}

#[test]
fn activations_of_bf16_weights_have_the_form_of_their_level() {
    for isa in isas().into_iter().filter(|isa| *isa != Isa::Scalar) {
        let form = Dispatch::new(isa, MatmulVariant::of_level(isa), Precision::Fast, Format::BF16).unwrap().form();
        let bf16 = matches!(isa, Isa::Avx512Bf16 | Isa::Amx | Isa::NeonBf16);
        assert_eq!(form, if bf16 { ActivationEncoding::Bf16 } else { ActivationEncoding::RoundedF32 }, "{isa}");
    }
}
