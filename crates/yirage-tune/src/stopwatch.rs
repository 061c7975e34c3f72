//! What takes times: the machine's clock, or a test's script.

use crate::error::TuneError;
use std::time::{Duration, Instant};

/// Which graph runs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TimedGraphId {
    /// The input graph.
    Input,
    /// The candidate of this number.
    Candidate(usize),
}

/// What takes times.
pub trait Stopwatch {
    /// Time since the stopwatch was made.
    fn elapsed(&self) -> Duration;

    /// Runs, and says how long it took.
    ///
    /// # Errors
    /// Those of `run`.
    fn time(&self, graph: TimedGraphId, run: &mut dyn FnMut() -> Result<(), TuneError>) -> Result<Duration, TuneError>;
}

/// The machine's monotonic clock.
#[derive(Debug)]
pub struct MonotonicStopwatch(Instant);

impl MonotonicStopwatch {
    /// From now on.
    pub fn start() -> MonotonicStopwatch {
        MonotonicStopwatch(Instant::now())
    }
}

impl Stopwatch for MonotonicStopwatch {
    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }

    fn time(&self, _: TimedGraphId, run: &mut dyn FnMut() -> Result<(), TuneError>) -> Result<Duration, TuneError> {
        let before = Instant::now();
        run()?;
        Ok(before.elapsed())
    }
}
