//! The way of events from the engine's thread to whoever asked.
//!
//! The engine never waits for a reader: what is not read is kept up to a bound, behind which the answer ends.

use crate::error::SessionError;
use crate::event::Event;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

/// Bytes of one answer that may wait to be read.
const MOST_UNREAD: usize = 256 << 20;

/// An answer on its way. Events come in order; without one left to read, reading waits. Dropped, it is cancelled.
pub struct Answer(Arc<Shared>);

/// The engine's end.
pub(crate) struct Sink(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    cancelled: AtomicBool,
}

#[derive(Default)]
struct State {
    events: VecDeque<Event>,
    unread: usize,
    error: Option<SessionError>,
    /// The end or an error is among what is here.
    ended: bool,
    /// Nothing comes behind what is here.
    closed: bool,
}

/// Both ends of an answer.
pub(crate) fn answer() -> (Sink, Answer) {
    let shared = Arc::<Shared>::default();
    (Sink(shared.clone()), Answer(shared))
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn take(&mut self) -> Poll<Option<Result<Event, SessionError>>> {
        if let Some(event) = self.events.pop_front() {
            self.unread -= event.bytes();
            return Poll::Ready(Some(Ok(event)));
        }
        match self.error.take() {
            Some(error) => Poll::Ready(Some(Err(error))),
            None if self.closed => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

impl Answer {
    /// The next event, waited for at most so long. [`Poll::Pending`] is none yet, `None` that nothing comes any more.
    pub fn next_within(&mut self, wait: Duration) -> Poll<Option<Result<Event, SessionError>>> {
        let end = Instant::now() + wait;
        let mut state = self.0.state();
        loop {
            let taken = state.take();
            let left = end.saturating_duration_since(Instant::now());
            if taken.is_ready() || left.is_zero() {
                return taken;
            }
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Asks for the end: what comes until then still comes, the counts at last.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Relaxed);
    }
}

impl Iterator for Answer {
    type Item = Result<Event, SessionError>;

    fn next(&mut self) -> Option<Result<Event, SessionError>> {
        let mut state = self.0.state();
        loop {
            if let Poll::Ready(taken) = state.take() {
                return taken;
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl Sink {
    /// Gives an event to the reader.
    ///
    /// # Errors
    /// [`SessionError::Unread`] where too much waits already.
    pub(crate) fn push(&self, event: Event) -> Result<(), SessionError> {
        let mut state = self.0.state();
        let bytes = state.unread + event.bytes();
        if bytes > MOST_UNREAD && !state.events.is_empty() {
            return Err(SessionError::Unread { bytes, most: MOST_UNREAD });
        }
        state.unread = bytes;
        state.ended |= matches!(event, Event::Finished(_));
        state.events.push_back(event);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Ends the answer with an error.
    pub(crate) fn fail(self, error: SessionError) {
        let mut state = self.0.state();
        (state.error, state.ended) = (Some(error), true);
    }

    /// Whether the reader wants no more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Relaxed)
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if !state.ended {
            // The thread has ended before it looked at the job.
            state.error = Some(SessionError::Gone { why: "its thread ended before this answer did".into() });
        }
        state.closed = true;
        drop(state);
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(length: usize) -> Event {
        Event::Text("x".repeat(length))
    }

    #[test]
    fn events_come_in_order_then_the_error_then_nothing() {
        let (sink, mut answer) = answer();
        assert!(answer.next_within(Duration::ZERO).is_pending());
        sink.push(text(1)).unwrap();
        sink.push(text(2)).unwrap();
        sink.fail(SessionError::Busy { most: 3 });
        assert_eq!(answer.next().unwrap().unwrap(), text(1));
        assert_eq!(answer.next().unwrap().unwrap(), text(2));
        assert!(matches!(answer.next(), Some(Err(SessionError::Busy { most: 3 }))));
        assert!(answer.next().is_none());
        assert!(matches!(answer.next_within(Duration::ZERO), Poll::Ready(None)));
    }

    #[test]
    fn an_answer_that_nobody_ends_ends_in_an_error() {
        let (sink, mut answer) = answer();
        sink.push(text(1)).unwrap();
        drop(sink);
        assert!(answer.next().unwrap().is_ok());
        assert!(matches!(answer.next(), Some(Err(SessionError::Gone { .. }))));
        assert!(answer.next().is_none());
    }

    #[test]
    fn what_nobody_reads_is_bounded() {
        let (sink, mut answer) = answer();
        let big = MOST_UNREAD / 2;
        sink.push(text(big)).unwrap();
        assert!(matches!(sink.push(text(big)), Err(SessionError::Unread { most: MOST_UNREAD, .. })));
        answer.next().unwrap().unwrap();
        sink.push(text(big)).unwrap();
    }

    #[test]
    fn an_answer_that_is_dropped_is_cancelled() {
        let (sink, answer) = answer();
        assert!(!sink.is_cancelled());
        drop(answer);
        assert!(sink.is_cancelled());
        sink.push(text(1)).unwrap();
    }
}
