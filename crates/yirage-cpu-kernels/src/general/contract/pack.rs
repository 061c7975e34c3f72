//! Packing: a block of a matrix as f32, in rows of one length, in the first cache levels.

use super::float::{Float, load};
use crate::memory::prefetch;
use crate::simd::{LANES, Lanes, WithLanes};

/// Rows that are fetched before they are packed.
const AHEAD: isize = 6;
/// Elements along a column that are turned at once: a cache line or two of each of sixteen columns.
const RUN: usize = 64;

/// A block that is packed: element `(r, c)` goes to `into + c / width * panel + r * width + c % width`, in the place of
/// the columns up to the next multiple of sixteen goes anything finite or what is beside it.
#[derive(Clone, Copy)]
pub(super) struct Pack<E> {
    /// Element `(0, 0)`.
    pub(super) from: *const E,
    /// Elements from row to row.
    pub(super) down: isize,
    /// Elements from column to column.
    pub(super) across: isize,
    pub(super) rows: usize,
    pub(super) columns: usize,
    pub(super) into: *mut f32,
    /// Columns of a panel, a multiple of sixteen.
    pub(super) width: usize,
    /// From panel to panel.
    pub(super) panel: usize,
}

impl<E: Float> WithLanes for Pack<E> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: who makes a `Pack` vouches for the block and for the room.
        unsafe { if self.across == 1 { self.copy::<V>() } else { self.turn::<V>() } }
    }
}

impl<E: Float> Pack<E> {
    /// Rows without gaps, each read from its start to its end.
    #[inline(always)]
    unsafe fn copy<V: Lanes>(&self) {
        for r in 0..self.rows {
            // SAFETY: the row exists, and so do its columns and their places.
            unsafe {
                let row = self.from.offset(r as isize * self.down);
                // Runs of few lines are too short for the processor to see where they lead.
                let next = row.wrapping_offset(AHEAD * self.down);
                prefetch(next.cast(), self.columns * size_of::<E>());
                let mut to = self.into.add(r * self.width);
                for first in (0..self.columns).step_by(self.width) {
                    let n = self.width.min(self.columns - first);
                    for c in (0..n).step_by(LANES) {
                        load::<V, E>(row.add(first + c), n - c).store(to.add(c));
                    }
                    to = to.wrapping_add(self.panel);
                }
            }
        }
    }

    /// Sixteen columns at a time, each read along k and turned in registers.
    #[inline(always)]
    unsafe fn turn<V: Lanes>(&self) {
        let mut runs = [[0f32; RUN]; LANES];
        for c in (0..self.columns).step_by(LANES) {
            let to = self.into.wrapping_add(c / self.width * self.panel + c % self.width);
            // Beyond the last column it once more.
            let column = |i: usize| (c + i).min(self.columns - 1) as isize * self.across;
            for r in (0..self.rows).step_by(RUN) {
                let n = RUN.min(self.rows - r);
                for (i, run) in runs.iter_mut().enumerate() {
                    // SAFETY: the column and these rows of it exist.
                    unsafe { self.fetch::<V>(self.from.offset(column(i) + r as isize * self.down), &mut run[..n]) };
                }
                let whole = n / 4 * 4;
                for q in (0..whole).step_by(4) {
                    // SAFETY: four numbers of each run from q on.
                    let turned = unsafe { V::turn(&runs.each_ref().map(|run| run.as_ptr().add(q))) };
                    for (i, v) in turned.into_iter().enumerate() {
                        // SAFETY: the place of a row that exists.
                        unsafe { v.store(to.add((r + q + i) * self.width)) };
                    }
                }
                for q in whole..n {
                    // SAFETY: the place of a row that exists.
                    unsafe { V::of(&runs.each_ref().map(|run| run[q])).store(to.add((r + q) * self.width)) };
                }
            }
        }
    }

    /// Elements of a column.
    ///
    /// # Safety
    /// The column has as many elements as the run.
    #[inline(always)]
    unsafe fn fetch<V: Lanes>(&self, from: *const E, run: &mut [f32]) {
        let whole = if self.down == 1 { run.len() / LANES * LANES } else { 0 };
        for at in (0..whole).step_by(LANES) {
            // SAFETY: `Pack::fetch` is promised as many elements as the run is long; `StridedInput::within` and
            // `StridedOutput::within` check the operands, `contract` the scratch.
            unsafe { E::load::<V>(from.add(at)).store(run.as_mut_ptr().add(at)) };
        }
        for (at, x) in run.iter_mut().enumerate().skip(whole) {
            // SAFETY: `Pack::fetch` is promised as many elements as the run is long; `StridedInput::within` and
            // `StridedOutput::within` check the operands, `contract` the scratch.
            *x = unsafe { from.offset(at as isize * self.down).read() }.wide();
        }
    }
}
