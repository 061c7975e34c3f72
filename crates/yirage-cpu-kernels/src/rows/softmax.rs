//! Softmax over a row.

use super::{Dst, LaneFn, ReductionTerm, Src, load, map, reduce};
use crate::isa::Isa;
use crate::simd::{LANES, Lanes, WithLanes, launch, math};
use std::ops::Range;

/// Softmax of the `width` elements of each row (all -inf gives NaN, as the definition does).
///
/// # Safety
/// The rows of the range exist in `x` and `out`; `out` is `x` or does not overlap it.
pub unsafe fn softmax(isa: Isa, rows: Range<usize>, width: usize, x: Src, out: Dst) {
    // SAFETY: `SoftmaxKernel` wants what `softmax` promises of its rows.
    unsafe { launch(isa, SoftmaxKernel { rows, width, x, out }) };
}

/// Largest element of a row; NaN elements are passed over.
///
/// # Safety
/// `p` has `n` floats.
#[inline(always)]
pub(super) unsafe fn largest<V: Lanes>(p: *const f32, n: usize) -> f32 {
    let mut best = [V::splat(f32::NEG_INFINITY); 4];
    for (c, i) in (0..n).step_by(LANES).enumerate() {
        // SAFETY: `largest` is promised n floats; `Site` binds whole rows.
        let x = unsafe { load::<V>(p.add(i), n - i, f32::NEG_INFINITY) };
        best[c % 4] = x.max(best[c % 4]);
    }
    best[0].max(best[1]).max(best[2].max(best[3])).largest()
}

/// `e^(x - max)`.
pub(super) struct Shifted {
    pub(super) max: f32,
}

impl LaneFn for Shifted {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        math::exp(x.sub(V::splat(self.max)))
    }
}

/// Sum of `e^(x - max)`.
impl ReductionTerm for Shifted {
    #[inline(always)]
    fn fill(&self) -> f32 {
        f32::NEG_INFINITY
    }
    #[inline(always)]
    fn take<V: Lanes>(&self, acc: V, x: V) -> V {
        acc.add(self.at(x))
    }
}

struct Normal {
    shifted: Shifted,
    sum: f32,
}

impl LaneFn for Normal {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        self.shifted.at(x).div(V::splat(self.sum))
    }
}

/// Needs the rows that [`softmax`] is promised.
struct SoftmaxKernel {
    rows: Range<usize>,
    width: usize,
    x: Src,
    out: Dst,
}

impl WithLanes for SoftmaxKernel {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        for r in self.rows {
            // SAFETY: the contract of `softmax`.
            unsafe {
                let (x, out) = (self.x.row(r), self.out.row(r));
                let shifted = Shifted { max: largest::<V>(x, self.width) };
                let sum = reduce::<V, _>(&shifted, x, self.width);
                map::<V, _>(&Normal { shifted, sum }, x, out, self.width);
            }
        }
    }
}
