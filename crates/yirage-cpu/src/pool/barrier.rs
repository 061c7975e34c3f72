//! A phase barrier without a central counter: every worker publishes its own epoch on its own cache line.

use super::wait::{Backoff, SpinPolicy};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// One counter alone on its cache lines (128 bytes: processors fetch lines in pairs).
#[repr(align(128))]
#[derive(Default)]
struct EpochLine(AtomicU32);

/// The epochs of all workers.
pub(super) struct Barrier {
    epochs: Box<[EpochLine]>,
    broken: AtomicBool,
    patience: SpinPolicy,
}

/// A worker that will never arrive makes the barrier broken.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BarrierBroken;

impl Barrier {
    pub(super) fn new(workers: usize, patience: SpinPolicy) -> Barrier {
        Barrier {
            epochs: (0..workers).map(|_| EpochLine::default()).collect(),
            broken: AtomicBool::new(false),
            patience,
        }
    }

    /// Arrives and waits for the others of the first `count`. What any worker wrote before is visible to all after. Waiters
    /// of a broken barrier return at once.
    #[inline]
    pub(super) fn wait(&self, me: usize, count: usize) -> Result<(), BarrierBroken> {
        let mine = &self.epochs[me].0;
        let target = mine.load(Ordering::Relaxed).wrapping_add(1);
        mine.store(target, Ordering::Release);
        for (i, other) in self.epochs[..count].iter().enumerate() {
            if i == me {
                continue;
            }
            let mut backoff = Backoff::new(self.patience);
            // The others can be one epoch ahead, never more: they cannot pass their next barrier without us.
            while (other.0.load(Ordering::Acquire).wrapping_sub(target) as i32) < 0 {
                if self.broken.load(Ordering::Acquire) {
                    return Err(BarrierBroken);
                }
                backoff.snooze();
            }
        }
        Ok(())
    }

    /// Frees all present and future waiters.
    pub(super) fn break_up(&self) {
        self.broken.store(true, Ordering::Release);
    }

    /// How long its waiters spin.
    pub(super) fn patience(&self) -> SpinPolicy {
        self.patience
    }

    /// Whether a worker will never arrive.
    #[inline]
    pub(super) fn is_broken(&self) -> bool {
        self.broken.load(Ordering::Acquire)
    }

    /// Makes a broken barrier whole. Only while no worker is inside.
    pub(super) fn mend(&self) {
        if self.broken.swap(false, Ordering::AcqRel) {
            self.restart();
        }
    }

    /// Begins anew, for another number of workers. Only while no worker is inside.
    pub(super) fn restart(&self) {
        self.epochs.iter().for_each(|e| e.0.store(0, Ordering::Relaxed));
    }
}
