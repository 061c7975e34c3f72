//! Row-wise operations: each works on a range of rows (tokens), so that threads take ranges and the result of a row
//! does not depend on the range. Sums run over 64 partial sums in a fixed order, the same at every instruction-set
//! level, so a row's bits do not depend on the level either.
//!
//! Rows lie anywhere, a stride apart ([`Src`], [`Dst`]). An output may be exactly an input's memory (in place), or must
//! not overlap it. Deliberately unknown here: matrices, caches, threads.

mod hadamard;
mod matmul;
mod mixture;
mod norm;
mod rope;
mod route;
mod softmax;
mod top_k;

pub use hadamard::hadamard;
pub use matmul::{MatMulSizes, matmul};
pub use mixture::{expert_bias, expert_sum};
pub use norm::{LayerNormParams, RmsNormParams, layer_norm, rms_norm};
pub use rope::{RopeParams, rope};
pub use route::{MAX_EXPERTS, RouteParams, route};
pub use softmax::softmax;
pub use top_k::{TopKParams, top_k};

use crate::simd::{LANES, Lanes};

/// Rows that are read.
#[derive(Clone, Copy, Debug)]
pub struct Src {
    base: *const f32,
    stride: usize,
}

/// Rows that are written.
#[derive(Clone, Copy, Debug)]
pub struct Dst {
    base: *mut f32,
    stride: usize,
}

// SAFETY: addresses; the unsafe functions that use them say who may touch what.
unsafe impl Send for Src {}
// SAFETY: addresses; the unsafe functions that use them say who may touch what.
unsafe impl Sync for Src {}
// SAFETY: addresses; the unsafe functions that use them say who may touch what.
unsafe impl Send for Dst {}
// SAFETY: addresses; the unsafe functions that use them say who may touch what.
unsafe impl Sync for Dst {}

impl Src {
    /// Row r starts at `base + r * stride` floats.
    pub fn new(base: *const f32, stride: usize) -> Src {
        Src { base, stride }
    }

    /// Address of a row.
    ///
    /// # Safety
    /// The row must exist.
    #[inline(always)]
    pub(crate) unsafe fn row(self, r: usize) -> *const f32 {
        // The base may stand for a row that is not there.
        self.base.wrapping_add(r * self.stride)
    }
}

impl Dst {
    /// Row r starts at `base + r * stride` floats.
    pub fn new(base: *mut f32, stride: usize) -> Dst {
        Dst { base, stride }
    }

    /// Address of a row.
    ///
    /// # Safety
    /// The row must exist.
    #[inline(always)]
    pub(crate) unsafe fn row(self, r: usize) -> *mut f32 {
        // The base may stand for a row that is not there.
        self.base.wrapping_add(r * self.stride)
    }
}

/// Up to 16 floats from `p`, `fill` in the other lanes.
///
/// # Safety
/// `p` has `n` floats, or sixteen if that is fewer.
#[inline(always)]
pub(crate) unsafe fn load<V: Lanes>(p: *const f32, n: usize, fill: f32) -> V {
    if n >= LANES {
        // SAFETY: `load` is promised n floats; `Site` binds whole rows.
        return unsafe { V::load(p) };
    }
    // SAFETY: `load` is promised n floats; `Site` binds whole rows.
    V::part(unsafe { std::slice::from_raw_parts(p, n) }, fill)
}

/// The first `n` (at most 16) lanes to `p`.
///
/// # Safety
/// `p` has room for `n` floats, or for sixteen if that is fewer, which nobody else uses.
#[inline(always)]
pub(crate) unsafe fn store<V: Lanes>(v: V, p: *mut f32, n: usize) {
    if n >= LANES {
        // SAFETY: `store` is promised n floats; `Site` binds whole rows.
        unsafe { v.store(p) }
    } else {
        let all = v.array();
        // SAFETY: `store` is promised n floats; n is at most 16; `Site` binds whole rows.
        unsafe { std::ptr::copy_nonoverlapping(all.as_ptr(), p, n) }
    }
}

/// A step of a reduction over a row's elements.
pub(crate) trait ReductionTerm {
    /// Value of lanes past the row's end: it must change nothing.
    fn fill(&self) -> f32;
    /// The accumulator with `x` taken in.
    fn take<V: Lanes>(&self, acc: V, x: V) -> V;
}

/// Sum of `n` elements' terms: vector c of the row goes to accumulator c mod 4.
///
/// # Safety
/// `p` has `n` floats.
#[inline(always)]
pub(crate) unsafe fn reduce<V: Lanes, T: ReductionTerm>(term: &T, p: *const f32, n: usize) -> f32 {
    let mut acc = [V::splat(0.0); 4];
    let mut i = 0;
    while i + 4 * LANES <= n {
        for (a, acc) in acc.iter_mut().enumerate() {
            // SAFETY: `reduce` is promised n floats; `Site` binds whole rows.
            *acc = term.take(*acc, unsafe { V::load(p.add(i + a * LANES)) });
        }
        i += 4 * LANES;
    }
    for acc in &mut acc {
        if i < n {
            // SAFETY: `reduce` is promised n floats; `Site` binds whole rows.
            *acc = term.take(*acc, unsafe { load(p.add(i), n - i, term.fill()) });
            i += LANES;
        }
    }
    acc[0].add(acc[1]).add(acc[2].add(acc[3])).sum()
}

/// A function of one element.
pub(crate) trait LaneFn {
    /// Lanes in, lanes out.
    fn at<V: Lanes>(&self, x: V) -> V;
}

/// `out[i] = f(x[i])`.
///
/// # Safety
/// Both have `n` floats; `out` is `x` or does not overlap it.
#[inline(always)]
pub(crate) unsafe fn map<V: Lanes, F: LaneFn>(f: &F, x: *const f32, out: *mut f32, n: usize) {
    for i in (0..n).step_by(LANES) {
        // SAFETY: `map` is promised n floats of both; `Site` binds whole rows.
        unsafe { store(f.at(load::<V>(x.add(i), n - i, 0.0)), out.add(i), n - i) };
    }
}
