//! A stream with its timeline: what was submitted, how far it has come, and what it still has.
//!
//! The driver tells of an error in what ran by every later answer of the context: so whoever waits is told, and whoever submits.

use crate::limits::{PAUSE, SPIN};
use crate::runtime::{CudaContext, CudaEvent, CudaStream};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use yirage_hal::driver::DriverError;

/// What a stream has until it is behind all that was submitted with it: memory, a module, a graph.
pub(crate) type InUse = Box<dyn Any + Send + Sync>;

/// A stream and its timeline.
pub(crate) struct StreamQueue {
    stream: CudaStream,
    context: Arc<CudaContext>,
    state: Mutex<StreamState>,
}

#[derive(Default)]
struct StreamState {
    /// The last value that was asked for.
    signalled: u64,
    /// The last value that the stream has come to.
    reached: u64,
    /// The values that it has not come to.
    pending: VecDeque<PendingSignal>,
    /// Whether anything was submitted behind the last signal.
    is_behind: bool,
    /// What that has.
    in_use: Vec<InUse>,
    /// Events that nobody waits for.
    events: Vec<CudaEvent>,
    /// The first loss that was told: of a signal that could not be submitted, nothing else would tell who waits for it.
    lost: Option<DriverError>,
}

struct PendingSignal {
    value: u64,
    event: CudaEvent,
    in_use: Vec<InUse>,
}

impl StreamQueue {
    pub(crate) fn new(context: &Arc<CudaContext>) -> Result<StreamQueue, DriverError> {
        Ok(StreamQueue { stream: CudaStream::new(context)?, context: context.clone(), state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, StreamState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits what `command` gives to the stream, which has these things until it has run.
    pub(crate) fn submit(
        &self,
        in_use: impl IntoIterator<Item = InUse>,
        command: impl FnOnce(&CudaStream) -> Result<(), DriverError>,
    ) -> Result<(), DriverError> {
        let mut state = self.state();
        // What failed may have submitted a part.
        state.is_behind = true;
        state.in_use.extend(in_use);
        let done = command(&self.stream);
        state.noting_a_loss(done)
    }

    /// Gives something back once everything submitted so far has run.
    pub(crate) fn retire(&self, what: InUse) {
        let mut state = self.state();
        // Of a device that is lost nothing is known: what it had goes with the queue.
        let is_idle = state.advance().is_ok() && state.pending.is_empty() && !state.is_behind;
        if !is_idle {
            state.in_use.push(what);
        }
    }

    /// Submits a signal.
    pub(crate) fn signal(&self) -> Result<u64, DriverError> {
        let mut state = self.state();
        let event = state.events.pop().map_or_else(|| CudaEvent::new(&self.context, false), Ok);
        let recorded = event.and_then(|event| self.stream.record(&event).map(|()| event));
        let event = state.noting_a_loss(recorded)?;
        state.signalled += 1;
        state.is_behind = false;
        let (value, in_use) = (state.signalled, std::mem::take(&mut state.in_use));
        state.pending.push_back(PendingSignal { value, event, in_use });
        Ok(value)
    }

    /// The last value that the stream has come to.
    pub(crate) fn reached(&self) -> Result<u64, DriverError> {
        let mut state = self.state();
        state.advance()?;
        Ok(state.reached)
    }

    /// Waits for a value.
    pub(crate) fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError> {
        let began = Instant::now();
        loop {
            let reached = {
                let mut state = self.state();
                if state.reached < value {
                    state.advance()?;
                }
                state.reached
            };
            if reached >= value {
                return Ok(());
            }
            let waited = began.elapsed();
            let Some(left) = deadline.checked_sub(waited).filter(|left| !left.is_zero()) else {
                let waited_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
                return Err(DriverError::Deadline { waited_ms, reached, wanted: value });
            };
            if waited < SPIN { std::thread::yield_now() } else { std::thread::sleep(left.min(PAUSE)) }
        }
    }
}

impl StreamState {
    /// What was done, and the memory of it where it was the loss of the device.
    fn noting_a_loss<T>(&mut self, done: Result<T, DriverError>) -> Result<T, DriverError> {
        if let Err(lost @ DriverError::Lost(_)) = &done {
            self.lost.get_or_insert_with(|| lost.clone());
        }
        done
    }

    /// Takes note of how far the stream has come, and lets go of what it has no more.
    fn advance(&mut self) -> Result<(), DriverError> {
        if let Some(lost) = &self.lost {
            return Err(lost.clone());
        }
        while let Some(first) = self.pending.front() {
            let has_happened = first.event.has_happened();
            if !self.noting_a_loss(has_happened)? {
                break;
            }
            if let Some(PendingSignal { value, event, in_use }) = self.pending.pop_front() {
                self.reached = value;
                self.events.push(event);
                drop(in_use);
            }
        }
        Ok(())
    }
}

impl Drop for StreamQueue {
    fn drop(&mut self) {
        // What the stream has goes away with this: it has to be behind all of it, or be of a device that is lost.
        let _ = self.stream.finish();
    }
}
