//! A list of pieces of work that workers take until it is empty.

use super::sync::{AtomicU64, Ordering};
use std::ops::Range;

/// How far a stage's pieces are taken. The number of the run stands beside it, so nothing has to be set back between
/// runs.
#[repr(align(128))]
pub(crate) struct WorkList(AtomicU64);

impl WorkList {
    /// A list that nobody has taken from.
    pub(crate) fn new() -> WorkList {
        WorkList(AtomicU64::new(0))
    }

    /// The pieces that `worker` of `workers` begins with: a fixed quarter or so of its even share, so that it is known
    /// beforehand.
    pub(crate) fn first(total: usize, worker: usize, workers: usize) -> Range<usize> {
        let each = total / (2 * workers);
        worker * each..(worker + 1) * each
    }

    /// Some of the `total` pieces of run number `run` (from 1) that are nobody's first: many while many are left, then
    /// fewer, so that all workers end at about the same time. None if all are taken.
    pub(crate) fn take(&self, run: u32, total: usize, workers: usize) -> Option<Range<usize>> {
        let first = (total / (2 * workers) * workers) as u64;
        let mut seen = self.0.load(Ordering::Relaxed);
        loop {
            let taken = if (seen >> 32) as u32 == run { seen & u64::from(u32::MAX) } else { first };
            let left = (total as u64).checked_sub(taken).filter(|&left| left > 0)?;
            let next = taken + left.div_ceil(2 * workers as u64);
            let wanted = u64::from(run) << 32 | next;
            match self.0.compare_exchange_weak(seen, wanted, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Some(taken as usize..next as usize),
                Err(now) => seen = now,
            }
        }
    }
}
