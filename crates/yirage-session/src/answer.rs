//! The way of events from the engine's thread to whoever asked.
//!
//! The engine never waits for a reader: what is not read is kept up to a bound, behind which the answer ends.

use crate::error::SessionError;
use crate::event::SessionEvent;
use futures_core::Stream;
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// Bytes of one answer that may wait to be read.
const MOST_UNREAD: usize = 256 << 20;

/// An answer on its way. Events come in order; without one left to read, reading waits: as an iterator the thread, as a
/// stream the task, of any runtime. Dropped, it is cancelled.
pub struct AnswerEventStream(Arc<AnswerShared>);

/// The engine's end.
pub(crate) struct AnswerSink(Arc<AnswerShared>);

#[derive(Default)]
struct AnswerShared {
    state: Mutex<AnswerState>,
    changed: Condvar,
    cancelled: AtomicBool,
}

#[derive(Default)]
struct AnswerState {
    events: VecDeque<SessionEvent>,
    unread: usize,
    error: Option<SessionError>,
    /// The end or an error is among what is here.
    ended: bool,
    /// Nothing comes behind what is here.
    closed: bool,
    /// The task that waits.
    reader: Option<Waker>,
}

/// Both ends of an answer.
pub(crate) fn answer() -> (AnswerSink, AnswerEventStream) {
    let shared = Arc::<AnswerShared>::default();
    (AnswerSink(shared.clone()), AnswerEventStream(shared))
}

impl AnswerShared {
    fn state(&self) -> MutexGuard<'_, AnswerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whoever waits that there is something to read.
    fn wake_reader(&self, mut state: MutexGuard<'_, AnswerState>) {
        let reader = state.reader.take();
        drop(state);
        self.changed.notify_all();
        // What a task's runtime does when it is woken may take any lock.
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl AnswerState {
    fn take(&mut self) -> Poll<Option<Result<SessionEvent, SessionError>>> {
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

impl AnswerEventStream {
    /// The next event, waited for at most so long. [`Poll::Pending`] is none yet, `None` that nothing comes any more.
    pub fn next_within(&mut self, wait: Duration) -> Poll<Option<Result<SessionEvent, SessionError>>> {
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

impl Iterator for AnswerEventStream {
    type Item = Result<SessionEvent, SessionError>;

    fn next(&mut self) -> Option<Result<SessionEvent, SessionError>> {
        let mut state = self.0.state();
        loop {
            if let Poll::Ready(taken) = state.take() {
                return taken;
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Stream for AnswerEventStream {
    type Item = Result<SessionEvent, SessionError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<SessionEvent, SessionError>>> {
        let mut state = self.0.state();
        let taken = state.take();
        state.reader = taken.is_pending().then(|| context.waker().clone());
        taken
    }
}

impl Drop for AnswerEventStream {
    fn drop(&mut self) {
        self.cancel();
    }
}

impl AnswerSink {
    /// Gives an event to the reader.
    ///
    /// # Errors
    /// [`SessionError::Unread`] where too much waits already.
    pub(crate) fn push(&self, event: SessionEvent) -> Result<(), SessionError> {
        let mut state = self.0.state();
        let bytes = state.unread + event.bytes();
        if bytes > MOST_UNREAD && !state.events.is_empty() {
            return Err(SessionError::Unread { bytes, most: MOST_UNREAD });
        }
        state.unread = bytes;
        state.ended |= matches!(event, SessionEvent::Finished(_));
        state.events.push_back(event);
        self.0.wake_reader(state);
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

impl Drop for AnswerSink {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if !state.ended {
            // The thread has ended before it looked at the job.
            state.error = Some(SessionError::Gone { why: "its thread ended before this answer did".into() });
        }
        state.closed = true;
        self.0.wake_reader(state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    fn text(length: usize) -> SessionEvent {
        SessionEvent::Text("x".repeat(length))
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
    fn a_task_that_waits_is_woken_by_each_event_and_by_the_end() {
        struct WakeCounter(AtomicUsize);
        impl Wake for WakeCounter {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        let woken = Arc::new(WakeCounter(AtomicUsize::new(0)));
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        let (sink, mut answer) = answer();
        let mut poll = |answer: &mut AnswerEventStream| Pin::new(answer).poll_next(&mut context);
        assert!(poll(&mut answer).is_pending());
        sink.push(text(1)).unwrap();
        // What is there already wakes nobody.
        sink.push(text(2)).unwrap();
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert!(matches!(poll(&mut answer), Poll::Ready(Some(Ok(event))) if event == text(1)));
        assert!(matches!(poll(&mut answer), Poll::Ready(Some(Ok(event))) if event == text(2)));
        assert!(poll(&mut answer).is_pending());
        sink.fail(SessionError::Busy { most: 3 });
        assert_eq!(woken.0.load(Ordering::Relaxed), 2);
        assert!(matches!(poll(&mut answer), Poll::Ready(Some(Err(SessionError::Busy { most: 3 })))));
        assert!(matches!(poll(&mut answer), Poll::Ready(None)));
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
