//! A thread that writes an entry, stepping back behind everything else.

use super::keep::Keep;
use super::notice::Notice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use yirage_mmap::step_back;

/// At most one entry to write, on a thread of its own from [`Background::start`] on. Dropping it ends the work where it
/// stands.
pub(crate) struct Background {
    state: State,
    shared: Arc<Shared>,
}

enum State {
    Idle,
    Waiting(Box<Keep>),
    /// Gives the work back where it was told to stop before its end.
    Writing(JoinHandle<Option<Keep>>),
}

struct Shared {
    stop: AtomicBool,
    notices: Mutex<Vec<Notice>>,
}

impl Shared {
    fn report(&self, notice: Notice) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    /// One step; whether there are more.
    fn step(&self, keep: &mut Keep) -> bool {
        keep.step().unwrap_or_else(|why| {
            self.report(Notice::NotKept(why));
            false
        })
    }

    fn run(&self, mut keep: Keep) -> Option<Keep> {
        while !self.stop.load(Ordering::Relaxed) {
            if !self.step(&mut keep) {
                return None;
            }
        }
        Some(keep)
    }
}

impl Background {
    pub(super) fn new(keep: Option<Keep>, notices: Vec<Notice>) -> Background {
        let shared = Shared { stop: AtomicBool::new(false), notices: Mutex::new(notices) };
        Background { state: keep.map_or(State::Idle, |keep| State::Waiting(Box::new(keep))), shared: Arc::new(shared) }
    }

    /// Starts the work unless that was done before.
    pub(crate) fn start(&mut self) {
        let keep = match std::mem::replace(&mut self.state, State::Idle) {
            State::Waiting(keep) => *keep,
            other => return self.state = other,
        };
        let shared = Arc::clone(&self.shared);
        let body = move || {
            step_back();
            shared.run(keep)
        };
        match Builder::new().name("yirage-packed".into()).spawn(body) {
            Ok(thread) => self.state = State::Writing(thread),
            Err(e) => self.shared.report(Notice::NotKept(format!("no thread can be started: {e}"))),
        }
    }

    /// What became known since the last call.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.shared.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the work away from its thread, which may be kept waiting by all others, and finishes it on this one.
    pub(crate) fn settle(&mut self, progress: &mut dyn FnMut(u64, u64)) {
        let Some(mut keep) = self.take() else { return };
        loop {
            let (done, total) = keep.progress();
            progress(done, total);
            if !self.shared.step(&mut keep) {
                return;
            }
        }
    }

    fn take(&mut self) -> Option<Keep> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => None,
            State::Waiting(keep) => Some(*keep),
            State::Writing(thread) => {
                self.shared.stop.store(true, Ordering::Relaxed);
                // A thread that panicked has nothing left to finish; its message was printed.
                thread.join().ok().flatten()
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.take();
    }
}
