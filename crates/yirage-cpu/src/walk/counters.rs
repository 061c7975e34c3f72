//! Counters that tasks raise and wait for. They count on from run to run, so nothing has to be set back in between.
//!
//! What a task wrote before it raised a counter is visible to whoever has seen the counter at that value or a later one:
//! raising is a read-modify-write with release order, and each such write carries on what the earlier ones released.

use super::sync::{AtomicU32, Ordering};

/// A counter alone on its cache lines (128 bytes: processors fetch lines in pairs).
#[repr(align(128))]
struct CounterLine(AtomicU32);

/// The counters of one program.
pub(crate) struct SignalCounters {
    lines: Box<[CounterLine]>,
    /// Signals that each gets in one run.
    totals: Box<[u32]>,
}

impl SignalCounters {
    /// Counters as they stand after `runs` runs; `totals` are the signals that each gets in one run.
    pub(crate) fn new(totals: &[u32], runs: u32) -> SignalCounters {
        let line = |total: &u32| CounterLine(AtomicU32::new(runs.wrapping_mul(*total)));
        SignalCounters { lines: totals.iter().map(line).collect(), totals: totals.into() }
    }

    /// Raises a counter by one.
    #[inline]
    pub(crate) fn signal(&self, counter: u32) {
        self.lines[counter as usize].0.fetch_add(1, Ordering::Release);
    }

    /// How far a counter is from `at_least` in run number `run` (from 0): none once it is there.
    #[inline]
    pub(crate) fn missing(&self, counter: u32, at_least: u32, run: u32) -> Option<u32> {
        let target = run.wrapping_mul(self.totals[counter as usize]).wrapping_add(at_least);
        let missing = target.wrapping_sub(self.lines[counter as usize].0.load(Ordering::Acquire));
        // A run's signals are far fewer than half of all numbers, so what looks huge is negative.
        (missing as i32 > 0).then_some(missing)
    }

    /// Waits until a counter is `at_least` in run number `run`. `idle` is called for every look that was in vain, and
    /// ends the wait by saying false; then the result is false.
    #[inline]
    pub(crate) fn wait(&self, counter: u32, at_least: u32, run: u32, mut idle: impl FnMut() -> bool) -> bool {
        while self.missing(counter, at_least, run).is_some() {
            if !idle() {
                return false;
            }
        }
        true
    }

    /// Sets all back to run 0. Only while nobody waits or signals.
    pub(crate) fn reset(&mut self) {
        self.lines.iter().for_each(|l| l.0.store(0, Ordering::Relaxed));
    }
}
