//! How far a queue has come, and what went wrong on the way.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use yirage_hal::driver::DriverError;

/// Errors that nobody waits for are kept for so many signals.
const MAX_KEPT_ERRORS: usize = 1024;

/// The timeline of a queue.
#[derive(Default, Debug)]
pub(crate) struct Timeline {
    state: Mutex<TimelineState>,
    changed: Condvar,
}

#[derive(Default, Debug)]
struct TimelineState {
    reached: u64,
    /// The first error before each signal.
    errors: BTreeMap<u64, DriverError>,
    lost: Option<String>,
}

impl Timeline {
    fn state(&self) -> MutexGuard<'_, TimelineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The queue has come to `value`; `error` is what went wrong since the signal before.
    pub(crate) fn signal(&self, value: u64, error: Option<DriverError>) {
        let mut state = self.state();
        state.reached = value;
        state.errors.extend(error.map(|error| (value, error)));
        if state.errors.len() > MAX_KEPT_ERRORS {
            state.errors.pop_first();
        }
        self.changed.notify_all();
    }

    /// Nothing more will come.
    pub(crate) fn lose(&self, why: &str) {
        self.state().lost.get_or_insert_with(|| why.to_owned());
        self.changed.notify_all();
    }

    pub(crate) fn check_lost(&self) -> Result<(), DriverError> {
        self.state().lost.clone().map_or(Ok(()), |why| Err(DriverError::Lost(why)))
    }

    pub(crate) fn reached(&self) -> Result<u64, DriverError> {
        self.check_lost()?;
        Ok(self.state().reached)
    }

    pub(crate) fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError> {
        let end = Instant::now() + deadline;
        let mut state = self.state();
        loop {
            if let Some(error) = state.errors.remove(&value) {
                return Err(error);
            }
            if state.reached >= value {
                return Ok(());
            }
            if let Some(why) = &state.lost {
                return Err(DriverError::Lost(why.clone()));
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let waited_ms = deadline.as_millis() as u64;
                return Err(DriverError::Deadline { waited_ms, reached: state.reached, wanted: value });
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}
