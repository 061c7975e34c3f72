//! Few rows times a matrix as it lies: rows of b are read in address order, four at a time, and the sums wait in the
//! first-level cache.

use super::float::{Float, load};
use crate::memory::prefetch;
use crate::simd::{LANES, Lanes, WithLanes};

/// Rows of b that meet the sums at once; twice as many where the registers hold them, for sums that are many.
const DOWN: usize = 4;
/// Rows of a from which on the way of sums to the registers and back takes longer than a few more rows of b ahead do.
const MANY: usize = 4;

/// `sums += a b`. Each sum is one chain of fused multiply-adds, l ascending.
#[derive(Clone, Copy)]
pub(crate) struct Sweep<E> {
    /// `[row][l]`.
    pub(crate) a: *const f32,
    /// From row to row of a.
    pub(crate) line: usize,
    /// Rows of elements that lie side by side.
    pub(crate) b: *const E,
    /// Elements from row to row of b.
    pub(crate) down: isize,
    /// `[row][column]`.
    pub(crate) sums: *mut f32,
    /// From row to row of the sums.
    pub(crate) pitch: usize,
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) depth: usize,
}

impl<E: Float> WithLanes for Sweep<E> {
    type Out = ();

    #[inline(always)]
    fn run<V: Lanes>(self) {
        let mut l = 0;
        // SAFETY: who makes a `Sweep` vouches for a, b and the sums.
        unsafe {
            while V::WIDE && self.rows >= MANY && l + 2 * DOWN <= self.depth {
                self.along::<V, { 2 * DOWN }>(l);
                l += 2 * DOWN;
            }
            while l + DOWN <= self.depth {
                self.along::<V, DOWN>(l);
                l += DOWN;
            }
            while l < self.depth {
                self.along::<V, 1>(l);
                l += 1;
            }
        }
    }
}

impl<E: Float> Sweep<E> {
    /// Rows `l..l + L` of b from their start to their end.
    #[inline(always)]
    unsafe fn along<V: Lanes, const L: usize>(&self, l: usize) {
        let mut j = 0;
        // SAFETY: columns that exist.
        unsafe {
            while V::WIDE && j + 2 * LANES <= self.columns {
                self.step::<V, L, 2>(l, j, LANES);
                j += 2 * LANES;
            }
            while j + LANES <= self.columns {
                self.step::<V, L, 1>(l, j, LANES);
                j += LANES;
            }
            if j < self.columns {
                self.step::<V, L, 1>(l, j, self.columns - j);
            }
        }
    }

    /// `L` rows and `C` vectors of columns of b, the last of `last` columns, with all rows of a.
    #[inline(always)]
    unsafe fn step<V: Lanes, const L: usize, const C: usize>(&self, l: usize, j: usize, last: usize) {
        let mut b = [[V::splat(0.0); C]; L];
        for (q, b) in b.iter_mut().enumerate() {
            let row = self.b.wrapping_offset((l + q) as isize * self.down).wrapping_add(j);
            // The same columns of the rows that come next.
            let next = row.wrapping_offset(L as isize * self.down);
            prefetch(next.cast(), C * LANES * size_of::<E>());
            for (c, b) in b.iter_mut().enumerate() {
                // SAFETY: these columns of a row that exists.
                *b = unsafe { load::<V, E>(row.add(c * LANES), if c + 1 == C { last } else { LANES }) };
            }
        }
        for i in 0..self.rows {
            // SAFETY: the sums of these columns, and as many elements of a row of a.
            unsafe {
                let sums = self.sums.add(i * self.pitch + j);
                let a = self.a.add(i * self.line + l);
                let mut acc = [V::splat(0.0); C];
                for (c, acc) in acc.iter_mut().enumerate() {
                    *acc = crate::rows::load(sums.add(c * LANES), if c + 1 == C { last } else { LANES }, 0.0);
                }
                for (q, b) in b.iter().enumerate() {
                    let x = V::splat(*a.add(q));
                    for (acc, b) in acc.iter_mut().zip(b) {
                        *acc = x.fma(*b, *acc);
                    }
                }
                for (c, acc) in acc.into_iter().enumerate() {
                    crate::rows::store(acc, sums.add(c * LANES), if c + 1 == C { last } else { LANES });
                }
            }
        }
    }
}
