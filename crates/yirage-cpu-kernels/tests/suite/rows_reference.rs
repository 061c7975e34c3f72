//! Row operations against f64, at every level, for any range, in place or not.

use yirage_cpu_kernels::isa::Isa;
use yirage_cpu_kernels::rows::*;
use yirage_ir::op::NO_EXPERT;
use yirage_testkit::rng::Rng;

/// `n` numbers from -`size` to `size`.
fn floats(rng: &mut Rng, n: usize, size: f32) -> Vec<f32> {
    (0..n).map(|_| rng.signed_f32() * size).collect()
}

const WIDTHS: [usize; 12] = [1, 2, 15, 16, 17, 31, 64, 65, 127, 576, 2048, 2051];

fn src(x: &[f32], stride: usize) -> Src {
    Src::new(x.as_ptr(), stride)
}

/// The function over three rows at every level: whole, row by row, and in place; the results must be equal to the bit
/// and the padding of the stride untouched. Returns the rows without padding.
fn everywhere(x: &[f32], width: usize, f: &dyn Fn(Isa, std::ops::Range<usize>, Src, Dst)) -> Vec<f32> {
    let stride = width + 3;
    let mut padded = vec![7.5f32; 3 * stride];
    (0..3).for_each(|r| padded[r * stride..][..width].copy_from_slice(&x[r * width..][..width]));
    let mut first: Option<Vec<f32>> = None;
    for isa in Isa::ALL.iter().copied().filter(|i| i.available()) {
        let mut outs = [vec![7.5f32; 3 * stride], vec![7.5f32; 3 * stride], padded.clone()];
        f(isa, 0..3, src(&padded, stride), Dst::new(outs[0].as_mut_ptr(), stride));
        (0..3).for_each(|r| f(isa, r..r + 1, src(&padded, stride), Dst::new(outs[1].as_mut_ptr(), stride)));
        let own = outs[2].as_mut_ptr();
        f(isa, 0..3, Src::new(own, stride), Dst::new(own, stride));
        for out in outs {
            let first = first.get_or_insert_with(|| out.clone());
            for (i, (a, b)) in first.iter().zip(&out).enumerate() {
                assert!(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan(), "{isa} width {width} at {i}: {a} {b}");
            }
            (0..3).for_each(|r| assert!(out[r * stride + width..][..3].iter().all(|&v| v == 7.5)));
        }
    }
    let first = first.expect("there is always the scalar level");
    (0..3).flat_map(|r| first[r * stride..][..width].to_vec()).collect()
}

fn close(got: &[f32], want: &[f64], abs: f64, rel: f64, what: &str) {
    assert_eq!(got.len(), want.len());
    for (i, (&g, &w)) in got.iter().zip(want).enumerate() {
        let e = (f64::from(g) - w).abs();
        assert!(e <= abs + rel * w.abs(), "{what} at {i}: {g} for {w}");
    }
}

#[test]
fn norms() {
    let mut rng = Rng::new(1);
    for width in WIDTHS {
        for size in [1e-4, 1.0, 3e4] {
            let x = floats(&mut rng, 3 * width, size);
            let (w, b) = (floats(&mut rng, width, 2.0), floats(&mut rng, width, 1.0));
            for (weight, unit_offset) in [(None, false), (Some(&w[..]), false), (Some(&w[..]), true)] {
                let norm = RmsNormParams { row: width, width, eps: 1e-6, weight, unit_offset };
                // SAFETY: `everywhere` gives three rows.
                let got = everywhere(&x, width, &|isa, rows, x, out| unsafe { rms_norm(isa, rows, norm, x, out) });
                let want: Vec<f64> = x.chunks(width).flat_map(|row| rms(row, weight, unit_offset, 1e-6)).collect();
                close(&got, &want, 1e-9, 1e-6, "rms_norm");
            }
            for bias in [None, Some(&b[..])] {
                let norm = LayerNormParams { eps: 1e-5, weight: &w, bias };
                // SAFETY: `everywhere` gives three rows.
                let got = everywhere(&x, width, &|isa, rows, x, out| unsafe { layer_norm(isa, rows, norm, x, out) });
                let want: Vec<f64> = x.chunks(width).flat_map(|row| layer(row, &w, bias, 1e-5)).collect();
                close(&got, &want, 5e-6, 5e-6, "layer_norm");
            }
        }
    }
}

/// A mean in one f32 would leave distances with errors of a hundredth.
#[test]
fn the_norm_of_numbers_that_are_close_together() {
    for width in WIDTHS {
        let x: Vec<f32> = (0..3 * width).map(|i| 1000.0 + (i * i % 7) as f32 * 1e-3).collect();
        let w = vec![1.5; width];
        let norm = LayerNormParams { eps: 1e-5, weight: &w, bias: None };
        // SAFETY: `everywhere` gives three rows.
        let got = everywhere(&x, width, &|isa, rows, x, out| unsafe { layer_norm(isa, rows, norm, x, out) });
        let want: Vec<f64> = x.chunks(width).flat_map(|row| layer(row, &w, None, 1e-5)).collect();
        close(&got, &want, 5e-6, 5e-6, "layer_norm");
    }
}

fn rms(x: &[f32], weight: Option<&[f32]>, unit_offset: bool, eps: f32) -> Vec<f64> {
    let mean = x.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>() / x.len() as f64;
    let inverse = 1.0 / (mean + f64::from(eps)).sqrt();
    let w = |i: usize| weight.map_or(1.0, |w| f64::from(w[i]) + if unit_offset { 1.0 } else { 0.0 });
    x.iter().enumerate().map(|(i, &v)| f64::from(v) * inverse * w(i)).collect()
}

fn layer(x: &[f32], w: &[f32], b: Option<&[f32]>, eps: f32) -> Vec<f64> {
    let mean = x.iter().map(|&v| f64::from(v)).sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / x.len() as f64;
    let inverse = 1.0 / (variance + f64::from(eps)).sqrt();
    let bias = |i: usize| b.map_or(0.0, |b| f64::from(b[i]));
    x.iter().enumerate().map(|(i, &v)| (f64::from(v) - mean) * inverse * f64::from(w[i]) + bias(i)).collect()
}

#[test]
fn norms_of_heads() {
    let mut rng = Rng::new(2);
    let (x, w) = (floats(&mut rng, 3 * 5 * 24, 1.0), floats(&mut rng, 24, 1.0));
    let norm = RmsNormParams { row: 120, width: 24, eps: 1e-5, weight: Some(&w), unit_offset: false };
    // SAFETY: `everywhere` gives three rows.
    let got = everywhere(&x, 120, &|isa, rows, x, out| unsafe { rms_norm(isa, rows, norm, x, out) });
    let want: Vec<f64> = x.chunks(24).flat_map(|head| rms(head, Some(&w), false, 1e-5)).collect();
    close(&got, &want, 1e-9, 1e-6, "heads");
}

#[test]
fn rotations() {
    let mut rng = Rng::new(5);
    for (heads, width, rotary) in [(1, 2, 2), (4, 64, 64), (3, 80, 32), (2, 7, 6), (2, 128, 0), (1, 256, 256)] {
        let half = rotary / 2;
        let (cos, sin) = (floats(&mut rng, 50 * half, 1.0), floats(&mut rng, 50 * half, 1.0));
        let x = floats(&mut rng, 3 * heads * width, 2.0);
        let positions = [49, 0, 17];
        for interleaved in [false, true] {
            let spec = RopeParams { heads, width, rotary, interleaved, cos: &cos, sin: &sin };
            let row = heads * width;
            // SAFETY: `everywhere` gives three rows.
            let got = everywhere(&x, row, &|isa, r, x, out| unsafe {
                rope(isa, r.clone(), spec, Some(&positions[r]), x, out)
            });
            let mut want: Vec<f64> = x.iter().map(|&v| v.into()).collect();
            for (head, v) in want.chunks_mut(width).enumerate() {
                let p = positions[head / heads] as usize;
                for i in 0..half {
                    let (a, b) = if interleaved { (2 * i, 2 * i + 1) } else { (i, i + half) };
                    let (c, s) = (f64::from(cos[p * half + i]), f64::from(sin[p * half + i]));
                    (v[a], v[b]) = (v[a] * c - v[b] * s, v[b] * c + v[a] * s);
                }
            }
            close(&got, &want, 5e-7, 2e-7, "rope");
            if rotary > 0 {
                // SAFETY: `everywhere` gives three rows.
                let got = everywhere(&x, row, &|isa, r, x, out| unsafe {
                    rope(isa, r.clone(), spec, Some(&[50, -1, 0][r]), x, out)
                });
                assert!(got[0].is_nan() && got[row].is_nan() && !got[2 * row].is_nan());
                let by_row =
                    |t: &[f32]| positions.iter().flat_map(|&p| t[p as usize * half..][..half].to_vec()).collect();
                let (cos, sin): (Vec<f32>, Vec<f32>) = (by_row(&cos), by_row(&sin));
                // SAFETY: `everywhere` gives three rows.
                let got = everywhere(&x, row, &|isa, r, x, out| unsafe {
                    let own = r.start * half..r.end * half;
                    let spec = RopeParams { cos: &cos[own.clone()], sin: &sin[own], ..spec };
                    rope(isa, r, spec, None, x, out)
                });
                close(&got, &want, 5e-7, 2e-7, "rope of each row");
            }
        }
    }
}

/// The angle of (a, b) is the table's, so the first element of the pair is what its products lost.
#[test]
fn rotations_whose_products_cancel_or_are_infinite() {
    let (cos, sin) = ([0.6_f32; 16], [0.8_f32; 16]);
    for interleaved in [false, true] {
        let at = |i: usize| if interleaved { (2 * i, 2 * i + 1) } else { (i, i + 16) };
        let mut x = vec![0.0_f32; 3 * 32];
        for i in 0..48 {
            let (a, b) = at(i % 16);
            (x[i / 16 * 32 + a], x[i / 16 * 32 + b]) = (8.0 + i as f32, (8.0 + i as f32) * 0.75);
        }
        let (first, second) = at(3);
        (x[first], x[second]) = (f32::INFINITY, 1.0);
        let spec = RopeParams { heads: 1, width: 32, rotary: 32, interleaved, cos: &cos, sin: &sin };
        // SAFETY: `everywhere` gives three rows.
        let got = everywhere(&x, 32, &|isa, r, x, out| unsafe { rope(isa, r.clone(), spec, Some(&[0; 3][r]), x, out) });
        assert_eq!((got[first], got[second]), (f32::INFINITY, f32::INFINITY));
        for i in (0..48).filter(|&i| i != 3) {
            let (a, b) = at(i % 16);
            let (got, a, b) = (got[i / 16 * 32 + a], x[i / 16 * 32 + a], x[i / 16 * 32 + b]);
            let want = f64::from(a) * f64::from(cos[0]) - f64::from(b) * f64::from(sin[0]);
            assert!((f64::from(got) - want).abs() <= 2.0 * f64::from(f32::EPSILON) * want.abs(), "{got} is not {want}");
        }
    }
}

#[test]
fn hadamard_products() {
    let mut rng = Rng::new(8);
    for (parts, part) in [(5, 1), (3, 2), (2, 8), (3, 16), (1, 32), (4, 64), (2, 128), (1, 512)] {
        let x = floats(&mut rng, 3 * parts * part, 3.0);
        let width = parts * part;
        let mix = |x: &[f32]| {
            // SAFETY: `everywhere` gives three rows.
            everywhere(x, width, &|isa, r, x, out| unsafe { hadamard(isa, r, width, part, x, out) })
        };
        let got = mix(&x);
        let sign = |i: usize, j: usize| if (i & j).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
        let row = |x: &[f32], i: usize| x.iter().enumerate().map(|(j, x)| sign(i, j) * f64::from(*x)).sum::<f64>();
        let root = (part as f64).sqrt();
        let want: Vec<f64> = x.chunks(part).flat_map(|x| (0..part).map(move |i| row(x, i) / root)).collect();
        close(&got, &want, 2e-6, 1e-6, "hadamard");
        let same: Vec<f64> = x.iter().map(|&x| x.into()).collect();
        close(&mix(&got), &same, 4e-6, 2e-6, "twice");
    }
}

#[test]
fn softmax_rows() {
    let mut rng = Rng::new(6);
    for width in WIDTHS {
        let mut x = floats(&mut rng, 3 * width, 20.0);
        x[0] = if width > 1 { f32::NEG_INFINITY } else { 3.0 };
        // SAFETY: `everywhere` gives three rows.
        let got = everywhere(&x, width, &|isa, r, x, out| unsafe { softmax(isa, r, width, x, out) });
        let mut want = Vec::new();
        for row in x.chunks(width) {
            let max = row.iter().fold(f64::NEG_INFINITY, |m, &v| m.max(v.into()));
            let sum: f64 = row.iter().map(|&v| (f64::from(v) - max).exp()).sum();
            want.extend(row.iter().map(|&v| (f64::from(v) - max).exp() / sum));
        }
        close(&got, &want, 1e-12, 2e-6, "softmax");
        assert!(width == 1 || got[0] == 0.0);
    }
}

#[test]
fn experts_join_in_rank_order() {
    let mut rng = Rng::new(7);
    let (ranks, width) = (4, 37);
    let (x, w) = (floats(&mut rng, 3 * ranks * width, 1.0), floats(&mut rng, 3 * ranks, 1.0));
    let bias = floats(&mut rng, 6 * width, 1.0);
    let chosen = [0, 5, 2, 1, 1, 1, 4, 3, 2, 6, NO_EXPERT, -2];
    let mut first = None;
    for isa in Isa::ALL.iter().copied().filter(|i| i.available()) {
        let mut out = vec![0f32; 3 * width];
        let dst = Dst::new(out.as_mut_ptr(), width);
        // SAFETY: all three have three rows.
        unsafe { expert_sum(isa, 0..3, ranks, width, src(&x, ranks * width), src(&w, ranks), dst) };
        assert_eq!(&out, first.get_or_insert(out.clone()), "{isa}");
        for t in 0..3 {
            for i in 0..width {
                let part = |r: usize| f64::from(x[(t * ranks + r) * width + i]) * f64::from(w[t * ranks + r]);
                assert!((f64::from(out[t * width + i]) - (0..ranks).map(part).sum::<f64>()).abs() < 4e-7);
            }
        }
    }
    let mut out = vec![0f32; 3 * ranks * width];
    let dst = Dst::new(out.as_mut_ptr(), ranks * width);
    // SAFETY: both have three rows.
    unsafe { expert_bias(0..3, ranks, width, src(&x, ranks * width), &bias, &chosen, dst) };
    for (p, part) in out.chunks(width).enumerate() {
        for (i, &y) in part.iter().enumerate() {
            match usize::try_from(chosen[p]).ok().filter(|&e| e < 6) {
                Some(e) => assert_eq!(y, x[p * width + i] + bias[e * width + i]),
                None if chosen[p] == NO_EXPERT => {
                    assert_eq!(y.to_bits(), x[p * width + i].to_bits(), "none adds nothing")
                }
                None => assert!(y.is_nan()),
            }
        }
    }
}
