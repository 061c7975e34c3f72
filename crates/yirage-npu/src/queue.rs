//! The stream with its timeline: what was submitted, how far it has come, and what it still has.
//!
//! The runtime tells of a failure in what ran to who waits for the stream, and to nobody else: so a wait for a signal asks for the
//! event and waits for the stream, in turn.

use crate::limits::{ABANDON, SPIN, STREAM_WAIT_MS};
use crate::runtime::{AcceleratorRuntime, NpuEvent, NpuStream};
use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use yirage_hal::driver::DriverError;

/// What a stream has until it is behind all that was submitted with it.
pub(crate) type HeldByStream = Box<dyn Any + Send + Sync>;

/// A stream and its timeline.
pub(crate) struct NpuQueue {
    stream: NpuStream,
    runtime: Arc<dyn AcceleratorRuntime>,
    state: Mutex<NpuQueueState>,
}

#[derive(Default)]
struct NpuQueueState {
    /// The last value that was asked for.
    signalled: u64,
    /// The last value that the stream has come to.
    reached: u64,
    /// The values that it has not come to.
    pending: VecDeque<RecordedSignal>,
    /// Whether anything was submitted behind the last signal.
    is_behind: bool,
    /// What that has.
    in_use: Vec<HeldByStream>,
    /// The first loss that was told.
    lost: Option<DriverError>,
}

struct RecordedSignal {
    value: u64,
    event: NpuEvent,
    in_use: Vec<HeldByStream>,
}

impl NpuQueue {
    pub(crate) fn new(runtime: &Arc<dyn AcceleratorRuntime>) -> Result<NpuQueue, DriverError> {
        Ok(NpuQueue { stream: NpuStream::new(runtime)?, runtime: runtime.clone(), state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, NpuQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits what `command` gives to the stream, which has these things until it has run.
    pub(crate) fn submit<T>(
        &self,
        in_use: impl IntoIterator<Item = HeldByStream>,
        command: impl FnOnce(&NpuStream) -> Result<T, DriverError>,
    ) -> Result<T, DriverError> {
        let mut state = self.state();
        // What failed may have submitted a part.
        state.is_behind = true;
        state.in_use.extend(in_use);
        let done = command(&self.stream);
        state.noting_a_loss(done)
    }

    /// Gives something back once everything submitted so far has run.
    pub(crate) fn retire(&self, what: HeldByStream) {
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
        let recorded = NpuEvent::new(&self.runtime).and_then(|event| self.stream.record(&event).map(|()| event));
        let event = state.noting_a_loss(recorded)?;
        state.signalled += 1;
        state.is_behind = false;
        let (value, in_use) = (state.signalled, std::mem::take(&mut state.in_use));
        state.pending.push_back(RecordedSignal { value, event, in_use });
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
            if waited >= deadline {
                let waited_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
                return Err(DriverError::Deadline { waited_ms, reached, wanted: value });
            }
            if waited < SPIN {
                std::thread::yield_now();
            } else if self.drained()? {
                // Of a value that nobody has signalled nothing more comes.
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }

    /// Takes note of the loss of the device, or of the group that it is a rank of.
    pub(crate) fn lose(&self, error: DriverError) -> DriverError {
        let _ = self.state().noting_a_loss::<()>(Err(error.clone()));
        error
    }

    /// Waits until the stream has nothing more of what was submitted, or tells nothing more of it, and answers with true. A stream of
    /// a rank whose group is lost may wait for the others for ever: it is left as it is then, with all that it has.
    pub(crate) fn end(&self) -> bool {
        let began = Instant::now();
        while !self.stream.is_abandoned() && matches!(self.stream.wait(STREAM_WAIT_MS), Ok(false)) {
            let mut state = self.state();
            if state.lost.is_some() && began.elapsed() > ABANDON {
                std::mem::forget((std::mem::take(&mut state.pending), std::mem::take(&mut state.in_use)));
                self.stream.abandon();
            }
        }
        !self.stream.is_abandoned()
    }

    /// Whether everything has run, after a moment; and what was wrong with it.
    fn drained(&self) -> Result<bool, DriverError> {
        let told = self.stream.wait(STREAM_WAIT_MS);
        self.state().noting_a_loss(told)
    }
}

impl NpuQueueState {
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
            if let Some(RecordedSignal { value, in_use, .. }) = self.pending.pop_front() {
                self.reached = value;
                drop(in_use);
            }
        }
        Ok(())
    }
}

impl Drop for NpuQueue {
    fn drop(&mut self) {
        // What the stream has goes away with this: it has to be behind all of it, or be of a device that is lost.
        self.end();
    }
}
