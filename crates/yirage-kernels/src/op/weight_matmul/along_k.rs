//! Threads of a group that share the segments of a result: where few rows of few columns would leave a device idle.
//!
//! Each makes the sums of segments of its own. One of them adds these in the segments' order, so that the bytes are those of a
//! thread that makes all segments: how many share is nothing that a result depends on.

use super::{COLUMNS, ProductSizes, ROWS, SEGMENT, THREADS};
use yirage_ir::Dims;
use yirage_kir::{KernelMemory, KernelWriter, Register, ScalarType, Variable};
use yirage_plan::DeviceLimits;

/// Threads that share a result's segments at most: 8 times 32 are what every device has in a group (WebGPU's least limit).
const MOST: u32 = 8;

/// Threads from which on a device is thought to be busy: some 60 multiprocessors with 16 warps each.
const BUSY: u64 = 1 << 15;

/// Threads in lockstep that a device at least has whose groups' threads run beside each other. A processor that plays a device has
/// fewer, and runs a group's threads one after the other: there, sharing halves the speed (llvmpipe, of which 8 run in lockstep).
const LOCKSTEP: u32 = 16;

/// How many threads share the segments of each result, at the plan's largest sizes.
pub(super) fn count(sizes: &ProductSizes, columns: u32, bucket: &Dims, limits: &DeviceLimits) -> u32 {
    let rows = sizes.rows.get(bucket) as u64 * u64::from(sizes.per_row);
    let alone = rows.div_ceil(u64::from(ROWS)) * u64::from(columns.div_ceil(COLUMNS));
    let is_wide = limits.subgroup_widths.last().is_none_or(|&widest| widest >= LOCKSTEP);
    if alone >= BUSY || !is_wide { 1 } else { sizes.k.div_ceil(SEGMENT).min(MOST) }
}

/// The threads of a group that share segments, and the sums that they have made.
pub(super) struct ThreadsAlongK {
    count: u32,
    sums: KernelMemory,
    /// Which of the columns' threads a thread is.
    pub(super) column: Register,
    /// Which of the threads that share a result.
    part: Register,
}

impl ThreadsAlongK {
    /// So many threads for each one along the columns, for tiles of at most so many results.
    pub(super) fn new(w: &mut KernelWriter, count: u32, results: u32) -> ThreadsAlongK {
        let sums = w.shared(ScalarType::F32, count * results * THREADS);
        let (thread, threads) = (w.thread(), w.u32(THREADS));
        ThreadsAlongK { count, sums, column: w.rem(thread, threads), part: w.div(thread, threads) }
    }

    /// Adds the sums of so many segments to totals, which then only the first of those that share has. `segment` makes those of
    /// one. All threads of the group come here.
    pub(super) fn add_segments(
        &self,
        w: &mut KernelWriter,
        segments: u32,
        totals: &[Variable],
        segment: impl FnOnce(&mut KernelWriter, Register) -> Vec<Variable>,
    ) {
        let (none, all, step) = (w.u32(0), w.u32(segments), w.u32(self.count));
        w.for_each(none, all, step, |w, round| {
            let own = w.add(round, self.part);
            let make = |w: &mut KernelWriter| {
                let sums = segment(w, own);
                for (number, &sum) in sums.iter().enumerate() {
                    let (place, sum) = (self.place(w, self.part, number, totals.len()), w.get(sum));
                    w.store(self.sums, place, sum);
                }
            };
            if segments.is_multiple_of(self.count) {
                make(w);
            } else {
                let is_segment = w.less(own, all);
                w.when(is_segment, make);
            }
            w.barrier();
            self.when_first(w, |w| {
                let (left, one) = (w.sub(all, round), w.u32(1));
                let made = w.min(step, left);
                w.for_each(none, made, one, |w, part| {
                    for (number, &total) in totals.iter().enumerate() {
                        let place = self.place(w, part, number, totals.len());
                        let (so_far, sum) = (w.get(total), w.load(self.sums, place));
                        let next = w.add(so_far, sum);
                        w.set(total, next);
                    }
                });
            });
            // What was added is written over in the next round.
            w.barrier();
        });
    }

    /// What the thread does that has the totals.
    pub(super) fn when_first(&self, w: &mut KernelWriter, body: impl FnOnce(&mut KernelWriter)) {
        let zero = w.u32(0);
        let is_first = w.equal(self.part, zero);
        w.when(is_first, body);
    }

    /// Where a thread's sum of this number lies: beside those of its neighbours.
    fn place(&self, w: &mut KernelWriter, part: Register, number: usize, of: usize) -> Register {
        let (of, number, threads) = (w.u32(of as u32), w.u32(number as u32), w.u32(THREADS));
        let before = w.mul(part, of);
        let row = w.add(before, number);
        let first = w.mul(row, threads);
        w.add(first, self.column)
    }
}
