//! RMS and layer normalisation.

use super::{Dst, Src, Term, load, reduce, store};
use crate::isa::Isa;
use crate::simd::{LANES, Lanes, WithLanes, launch};
use std::ops::Range;

/// `x / sqrt(mean(x^2) + eps) * w` over groups of `width` elements (Zhang and Sennrich, 2019).
#[derive(Clone, Copy, Debug)]
pub struct RmsNorm<'a> {
    /// Elements of a row, a multiple of `width`.
    pub row: usize,
    /// Elements normalised together: a row, or a head.
    pub width: usize,
    /// Added to the mean of squares.
    pub eps: f32,
    /// `width` weights, shared by all groups; without, 1.
    pub weight: Option<&'a [f32]>,
    /// Whether the factor is `1 + w`.
    pub unit_offset: bool,
}

/// `(x - mean) / sqrt(variance + eps) * w + b` over rows of `weight.len()` elements (Ba, Kiros and Hinton, 2016).
#[derive(Clone, Copy, Debug)]
pub struct LayerNorm<'a> {
    /// Added to the variance.
    pub eps: f32,
    /// Weights.
    pub weight: &'a [f32],
    /// As many biases, or none.
    pub bias: Option<&'a [f32]>,
}

/// Sum of squared distances from a centre.
struct Squares {
    centre: f32,
}

impl Term for Squares {
    #[inline(always)]
    fn fill(&self) -> f32 {
        self.centre
    }
    #[inline(always)]
    fn take<V: Lanes>(&self, acc: V, x: V) -> V {
        let d = x.sub(V::splat(self.centre));
        d.fma(d, acc)
    }
}

/// Plain sum.
struct Sum;

impl Term for Sum {
    #[inline(always)]
    fn fill(&self) -> f32 {
        0.0
    }
    #[inline(always)]
    fn take<V: Lanes>(&self, acc: V, x: V) -> V {
        acc.add(x)
    }
}

/// `1 / sqrt(sum / n + eps)`, in f64 since it is one number.
#[inline(always)]
fn inverse(sum: f32, n: usize, eps: f32) -> f32 {
    (1.0 / (f64::from(sum) / n as f64 + f64::from(eps)).sqrt()) as f32
}

/// RMS normalisation of rows.
///
/// # Safety
/// The rows of the range exist in `x` and `out`; `out` is `x` or does not overlap it.
///
/// # Panics
/// If widths do not fit together.
pub unsafe fn rms_norm(isa: Isa, rows: Range<usize>, norm: RmsNorm<'_>, x: Src, out: Dst) {
    let fits = norm.width > 0 && norm.row.is_multiple_of(norm.width);
    assert!(fits && norm.weight.is_none_or(|w| w.len() == norm.width), "rows do not fit {norm:?}");
    launch(isa, RmsKernel { rows, norm, x, out });
}

struct RmsKernel<'a> {
    rows: Range<usize>,
    norm: RmsNorm<'a>,
    x: Src,
    out: Dst,
}

impl WithLanes for RmsKernel<'_> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes>(self) {
        let n = self.norm.width;
        for r in self.rows {
            for at in (0..self.norm.row).step_by(n) {
                // SAFETY: the contract of `rms_norm`.
                unsafe {
                    let (x, out) = (self.x.row(r).add(at), self.out.row(r).add(at));
                    let factor = V::splat(inverse(reduce::<V, _>(&Squares { centre: 0.0 }, x, n), n, self.norm.eps));
                    for i in (0..n).step_by(LANES) {
                        let mut y = load::<V>(x.add(i), n - i, 0.0).mul(factor);
                        if let Some(w) = self.norm.weight {
                            let w = load::<V>(w.as_ptr().add(i), n - i, 0.0);
                            y = if self.norm.unit_offset { y.mul(w.add(V::splat(1.0))) } else { y.mul(w) };
                        }
                        store(y, out.add(i), n - i);
                    }
                }
            }
        }
    }
}

/// Layer normalisation of rows.
///
/// # Safety
/// The rows of the range exist in `x` and `out`; `out` is `x` or does not overlap it.
///
/// # Panics
/// If there are not as many biases as weights.
pub unsafe fn layer_norm(isa: Isa, rows: Range<usize>, norm: LayerNorm<'_>, x: Src, out: Dst) {
    assert!(norm.bias.is_none_or(|b| b.len() == norm.weight.len()), "{} biases wanted", norm.weight.len());
    launch(isa, LayerKernel { rows, norm, x, out });
}

struct LayerKernel<'a> {
    rows: Range<usize>,
    norm: LayerNorm<'a>,
    x: Src,
    out: Dst,
}

impl WithLanes for LayerKernel<'_> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes>(self) {
        let n = self.norm.weight.len();
        for r in self.rows {
            // SAFETY: the contract of `layer_norm`.
            unsafe {
                let (x, out) = (self.x.row(r), self.out.row(r));
                let mean = reduce::<V, _>(&Sum, x, n) / n as f32;
                let factor = inverse(reduce::<V, _>(&Squares { centre: mean }, x, n), n, self.norm.eps);
                for i in (0..n).step_by(LANES) {
                    let y = load::<V>(x.add(i), n - i, 0.0).sub(V::splat(mean)).mul(V::splat(factor));
                    let w = load::<V>(self.norm.weight.as_ptr().add(i), n - i, 0.0);
                    let b = self.norm.bias.map_or(V::splat(0.0), |b| load::<V>(b.as_ptr().add(i), n - i, 0.0));
                    store(y.fma(w, b), out.add(i), n - i);
                }
            }
        }
    }
}
