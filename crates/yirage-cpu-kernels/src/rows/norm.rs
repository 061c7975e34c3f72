//! RMS and layer normalisation.

use super::{Dst, ReductionTerm, Src, load, reduce, store};
use crate::isa::Isa;
use crate::simd::{LANES, Lanes, WithLanes, launch};
use std::ops::Range;

/// `x / sqrt(mean(x^2) + eps) * w` over groups of `width` elements (Zhang and Sennrich, 2019).
#[derive(Clone, Copy, Debug)]
pub struct RmsNormParams<'a> {
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
pub struct LayerNormParams<'a> {
    /// Added to the variance.
    pub eps: f32,
    /// Weights.
    pub weight: &'a [f32],
    /// As many biases, or none.
    pub bias: Option<&'a [f32]>,
}

/// Where a row lies: near `near`, and `off` from there. Of numbers that are close together a mean in one f32 would leave
/// little that is right of their distances.
#[derive(Clone, Copy)]
struct Centre {
    near: f32,
    off: f32,
}

impl Centre {
    /// The mean of a row.
    ///
    /// # Safety
    /// The row has `n` elements.
    #[inline(always)]
    unsafe fn of<V: Lanes>(x: *const f32, n: usize) -> Centre {
        // SAFETY: what `Centre::of` is promised; `Site` binds whole rows.
        unsafe {
            let near = reduce::<V, _>(&PlainSum, x, n) / n as f32;
            let off = reduce::<V, _>(&Distances { from: near }, x, n) / n as f32;
            Centre { near, off }
        }
    }

    /// The row's variance: what its mean of squared distances from `near` exceeds that of the centre itself by.
    ///
    /// # Safety
    /// The row has `n` elements.
    #[inline(always)]
    unsafe fn variance<V: Lanes>(self, x: *const f32, n: usize) -> f64 {
        // SAFETY: what `Centre::variance` is promised; `Site` binds whole rows.
        let squares = unsafe { reduce::<V, _>(&SquaredDistances { from: self.near }, x, n) };
        (f64::from(squares) / n as f64 - f64::from(self.off) * f64::from(self.off)).max(0.0)
    }

    #[inline(always)]
    fn distance<V: Lanes>(self, x: V) -> V {
        x.sub(V::splat(self.near)).sub(V::splat(self.off))
    }
}

/// Sum of distances.
struct Distances {
    from: f32,
}

impl ReductionTerm for Distances {
    #[inline(always)]
    fn fill(&self) -> f32 {
        self.from
    }
    #[inline(always)]
    fn take<V: Lanes>(&self, acc: V, x: V) -> V {
        acc.add(x.sub(V::splat(self.from)))
    }
}

/// Sum of squared distances.
struct SquaredDistances {
    from: f32,
}

impl ReductionTerm for SquaredDistances {
    #[inline(always)]
    fn fill(&self) -> f32 {
        self.from
    }
    #[inline(always)]
    fn take<V: Lanes>(&self, acc: V, x: V) -> V {
        let d = x.sub(V::splat(self.from));
        d.fma(d, acc)
    }
}

/// Plain sum.
struct PlainSum;

impl ReductionTerm for PlainSum {
    #[inline(always)]
    fn fill(&self) -> f32 {
        0.0
    }
    #[inline(always)]
    fn take<V: Lanes>(&self, acc: V, x: V) -> V {
        acc.add(x)
    }
}

/// `1 / sqrt(square + eps)`, in f64 since it is one number.
#[inline(always)]
fn inverse(square: f64, eps: f32) -> f32 {
    (1.0 / (square + f64::from(eps)).sqrt()) as f32
}

/// RMS normalisation of rows.
///
/// # Safety
/// The rows of the range exist in `x` and `out`; `out` is `x` or does not overlap it.
///
/// # Panics
/// If widths do not fit together.
pub unsafe fn rms_norm(isa: Isa, rows: Range<usize>, norm: RmsNormParams<'_>, x: Src, out: Dst) {
    let fits = norm.width > 0 && norm.row.is_multiple_of(norm.width);
    assert!(fits && norm.weight.is_none_or(|w| w.len() == norm.width), "rows do not fit {norm:?}");
    // SAFETY: `RmsKernel` wants what `rms_norm` promises of its rows.
    unsafe { launch(isa, RmsKernel { rows, norm, x, out }) };
}

/// Needs the rows that [`rms_norm`] is promised.
struct RmsKernel<'a> {
    rows: Range<usize>,
    norm: RmsNormParams<'a>,
    x: Src,
    out: Dst,
}

impl WithLanes for RmsKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let n = self.norm.width;
        for r in self.rows {
            for at in (0..self.norm.row).step_by(n) {
                // SAFETY: the contract of `rms_norm`.
                unsafe {
                    let (x, out) = (self.x.row(r).add(at), self.out.row(r).add(at));
                    let squares = reduce::<V, _>(&SquaredDistances { from: 0.0 }, x, n);
                    let factor = V::splat(inverse(f64::from(squares) / n as f64, self.norm.eps));
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
pub unsafe fn layer_norm(isa: Isa, rows: Range<usize>, norm: LayerNormParams<'_>, x: Src, out: Dst) {
    assert!(norm.bias.is_none_or(|b| b.len() == norm.weight.len()), "{} biases wanted", norm.weight.len());
    // SAFETY: `LayerKernel` wants what `layer_norm` promises of its rows.
    unsafe { launch(isa, LayerKernel { rows, norm, x, out }) };
}

/// Needs the rows that [`layer_norm`] is promised.
struct LayerKernel<'a> {
    rows: Range<usize>,
    norm: LayerNormParams<'a>,
    x: Src,
    out: Dst,
}

impl WithLanes for LayerKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let n = self.norm.weight.len();
        for r in self.rows {
            // SAFETY: the contract of `layer_norm`.
            unsafe {
                let (x, out) = (self.x.row(r), self.out.row(r));
                let centre = Centre::of::<V>(x, n);
                let factor = inverse(centre.variance::<V>(x, n), self.norm.eps);
                for i in (0..n).step_by(LANES) {
                    let y = centre.distance(load::<V>(x.add(i), n - i, 0.0)).mul(V::splat(factor));
                    let w = load::<V>(self.norm.weight.as_ptr().add(i), n - i, 0.0);
                    let b = self.norm.bias.map_or(V::splat(0.0), |b| load::<V>(b.as_ptr().add(i), n - i, 0.0));
                    store(y.fma(w, b), out.add(i), n - i);
                }
            }
        }
    }
}
