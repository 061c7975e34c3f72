//! A thread that writes an entry, stepping back behind everything else.

use super::entry_writer::PackedEntryWriter;
use super::notice::Notice;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use yirage_mmap::step_back;

/// At most one entry to write, on a thread of its own from [`Background::start`] on. Dropping it ends the work where it
/// stands.
pub(crate) struct Background {
    state: BackgroundWriteState,
    shared: Arc<BackgroundWriteShared>,
}

enum BackgroundWriteState {
    Idle,
    Waiting(Box<PackedEntryWriter>),
    /// Gives the work back where it was told to stop before its end.
    Writing(JoinHandle<Option<PackedEntryWriter>>),
}

struct BackgroundWriteShared {
    stop: AtomicBool,
    notices: Mutex<Vec<Notice>>,
}

impl BackgroundWriteShared {
    fn report(&self, notice: Notice) {
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).push(notice);
    }

    /// One step; whether there are more.
    fn step(&self, keep: &mut PackedEntryWriter) -> bool {
        keep.step().unwrap_or_else(|why| {
            self.report(Notice::NotKept(why));
            false
        })
    }

    fn run(&self, mut keep: PackedEntryWriter) -> Option<PackedEntryWriter> {
        while !self.stop.load(Ordering::Relaxed) {
            if !self.step(&mut keep) {
                return None;
            }
        }
        Some(keep)
    }
}

impl Background {
    pub(super) fn new(keep: Option<PackedEntryWriter>, notices: Vec<Notice>) -> Background {
        let shared = BackgroundWriteShared { stop: AtomicBool::new(false), notices: Mutex::new(notices) };
        Background {
            state: keep.map_or(BackgroundWriteState::Idle, |keep| BackgroundWriteState::Waiting(Box::new(keep))),
            shared: Arc::new(shared),
        }
    }

    /// Starts the work unless that was done before.
    pub(crate) fn start(&mut self) {
        let keep = match std::mem::replace(&mut self.state, BackgroundWriteState::Idle) {
            BackgroundWriteState::Waiting(keep) => *keep,
            other => return self.state = other,
        };
        let shared = Arc::clone(&self.shared);
        let body = move || {
            step_back();
            shared.run(keep)
        };
        match Builder::new().name("yirage-packed".into()).spawn(body) {
            Ok(thread) => self.state = BackgroundWriteState::Writing(thread),
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

    fn take(&mut self) -> Option<PackedEntryWriter> {
        match std::mem::replace(&mut self.state, BackgroundWriteState::Idle) {
            BackgroundWriteState::Idle => None,
            BackgroundWriteState::Waiting(keep) => Some(*keep),
            BackgroundWriteState::Writing(thread) => {
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
