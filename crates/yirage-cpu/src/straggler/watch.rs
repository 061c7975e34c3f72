//! Reads, once in a while, how long each worker had to wait for a processor.

use crate::pool::{Queued, this_thread};
use std::io;
use std::time::{Duration, Instant};

/// Time of steps between two readings: many short steps share one.
const PERIOD: Duration = Duration::from_millis(20);
/// The same for each worker, so that reading them all takes less than a hundredth.
const PERIOD_OF_ONE: Duration = Duration::from_micros(500);

/// What the system has counted of the workers.
pub(crate) struct WorkerMonitor {
    since: Instant,
    /// The caller's, and whose it is: each step may have another caller.
    caller: Option<(u32, Counted)>,
    /// Those of the other workers, from 1.
    workers: Vec<Counted>,
    /// Time of steps since the last reading.
    steps: Duration,
}

/// A thread's count, and what it was at the last reading.
struct Counted {
    queued: Queued,
    last: Duration,
}

impl Counted {
    fn new(thread: u32) -> io::Result<Counted> {
        let queued = Queued::of(thread)?;
        let last = queued.read()?;
        Ok(Counted { queued, last })
    }

    /// What came since the last reading. A thread that cannot be read any more has not waited.
    fn more(&mut self) -> Duration {
        let now = self.queued.read().unwrap_or(self.last);
        now.saturating_sub(std::mem::replace(&mut self.last, now))
    }
}

impl WorkerMonitor {
    /// Over a pool's threads, by the numbers that the system gave them.
    ///
    /// # Errors
    /// A system that does not count this, as text.
    pub(crate) fn new(threads: &[u32]) -> Result<WorkerMonitor, String> {
        let workers = threads.iter().map(|&thread| Counted::new(thread)).collect::<io::Result<_>>();
        let workers = workers.map_err(|e| format!("how long threads wait for a processor cannot be read: {e}"))?;
        Ok(WorkerMonitor { since: Instant::now(), caller: None, workers, steps: Duration::ZERO })
    }

    /// Time on the clock that the controllers are told.
    pub(crate) fn now(&self) -> Duration {
        self.since.elapsed()
    }

    /// A step took so long. If it is time for a reading: for each worker, which share of the time of the steps since the
    /// last one it has waited for a processor.
    pub(crate) fn after(&mut self, took: Duration) -> Option<Vec<f64>> {
        self.steps += took;
        let workers = u32::try_from(self.workers.len()).unwrap_or(u32::MAX);
        if self.steps < PERIOD.max(PERIOD_OF_ONE.saturating_mul(workers)) {
            return None;
        }
        let steps = std::mem::take(&mut self.steps).as_secs_f64();
        let caller = self.caller();
        let others = self.workers.iter_mut().map(Counted::more);
        Some(std::iter::once(caller).chain(others).map(|waited| waited.as_secs_f64() / steps).collect())
    }

    /// What the caller has waited since the last reading, if that was in the same thread.
    fn caller(&mut self) -> Duration {
        let thread = this_thread();
        match &mut self.caller {
            Some((last, counted)) if *last == thread => counted.more(),
            caller => {
                *caller = Counted::new(thread).ok().map(|counted| (thread, counted));
                Duration::ZERO
            }
        }
    }
}
