//! What joins the experts of a token.

use super::{Dst, Src, load, store};
use crate::isa::Isa;
use crate::simd::{LANES, Lanes, WithLanes, launch};
use std::ops::Range;
use yirage_ir::op::NO_EXPERT;

/// `out[t] = sum over ranks r, ascending, of weights[t][r] * x[t][r * width ..]`.
///
/// # Safety
/// Rows of the range exist: `ranks * width` elements in `x`, `ranks` in `weights`, `width` in `out`, which overlaps
/// neither.
pub unsafe fn expert_sum(isa: Isa, rows: Range<usize>, ranks: usize, width: usize, x: Src, weights: Src, out: Dst) {
    // SAFETY: `SumKernel` wants what `expert_sum` promises of its rows.
    unsafe { launch(isa, SumKernel { rows, ranks, width, x, weights, out }) };
}

/// Needs the rows that [`expert_sum`] is promised.
struct SumKernel {
    rows: Range<usize>,
    ranks: usize,
    width: usize,
    x: Src,
    weights: Src,
    out: Dst,
}

impl WithLanes for SumKernel {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let n = self.width;
        for t in self.rows {
            // SAFETY: the contract of `expert_sum`.
            unsafe {
                let (x, w, out) = (self.x.row(t), self.weights.row(t), self.out.row(t));
                for i in (0..n).step_by(LANES) {
                    let mut acc = V::splat(0.0);
                    for r in 0..self.ranks {
                        acc = load::<V>(x.add(r * n + i), n - i, 0.0).fma(V::splat(*w.add(r)), acc);
                    }
                    store(acc, out.add(i), n - i);
                }
            }
        }
    }
}

/// `out[t][r * width ..] = x[t][r * width ..] + bias[chosen[t][r]]` for each rank r; an expert that is none adds
/// nothing, and one that does not exist gives NaN. `chosen` is `[rows.len()][ranks]`, the range's own part.
///
/// # Safety
/// Rows of the range exist in `x` and `out` with `ranks * width` elements; `out` is `x` or does not overlap it.
///
/// # Panics
/// If `chosen` has another length.
pub unsafe fn expert_bias(
    rows: Range<usize>,
    ranks: usize,
    width: usize,
    x: Src,
    bias: &[f32],
    chosen: &[i32],
    out: Dst,
) {
    assert!(chosen.len() == rows.len() * ranks, "{} chosen experts for {} rows", chosen.len(), rows.len());
    for (i, t) in rows.enumerate() {
        for r in 0..ranks {
            let expert = usize::try_from(chosen[i * ranks + r]).ok();
            let at = expert.and_then(|e| e.checked_mul(width));
            let row = at.and_then(|a| bias.get(a..a.checked_add(width)?));
            let missing = if chosen[i * ranks + r] == NO_EXPERT { 0.0 } else { f32::NAN };
            for j in 0..width {
                let b = row.map_or(missing, |b| b[j]);
                // SAFETY: what `expert_bias` is promised; `Site` binds whole rows.
                unsafe { *out.row(t).add(r * width + j) = *x.row(t).add(r * width + j) + b };
            }
        }
    }
}
