//! A thread for work on entries, which steps back behind everything else.

use super::Notice;
use super::task::{Step, Task};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use yirage_mmap::step_back;

/// At most one task, on a thread of its own from [`Background::start`] on. Dropping it ends the task where it stands.
pub(crate) struct Background {
    state: State,
    shared: Arc<Shared>,
}

enum State {
    Idle,
    Waiting(Box<Task>),
    /// Gives the task back where it was told to stop before its end.
    Writing(JoinHandle<Option<Task>>),
    /// A check, which nobody waits for.
    Checking,
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
    fn step(&self, task: &mut Task) -> bool {
        match task.step() {
            Ok(Step::More) => true,
            Ok(Step::Done) => false,
            Err(notice) => {
                self.report(notice);
                false
            }
        }
    }

    fn run(&self, mut task: Task) -> Option<Task> {
        while !self.stop.load(Ordering::Relaxed) {
            if !self.step(&mut task) {
                return None;
            }
        }
        Some(task)
    }
}

impl Background {
    pub(super) fn new(task: Option<Task>, notices: Vec<Notice>) -> Background {
        let shared = Shared { stop: AtomicBool::new(false), notices: Mutex::new(notices) };
        Background { state: task.map_or(State::Idle, |task| State::Waiting(Box::new(task))), shared: Arc::new(shared) }
    }

    /// Starts the task unless that was done before.
    pub(crate) fn start(&mut self) {
        let task = match std::mem::replace(&mut self.state, State::Idle) {
            State::Waiting(task) => *task,
            other => return self.state = other,
        };
        let writes = matches!(task, Task::Keep(_));
        let shared = Arc::clone(&self.shared);
        let body = move || {
            step_back();
            shared.run(task)
        };
        match Builder::new().name("yirage-packed".into()).spawn(body) {
            Ok(thread) if writes => self.state = State::Writing(thread),
            Ok(_) => self.state = State::Checking,
            Err(e) => self.shared.report(Notice::NotKept(format!("no thread can be started: {e}"))),
        }
    }

    /// What became known since the last call.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        std::mem::take(&mut *self.shared.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Takes the task away from its thread, which may be kept waiting by all others, and finishes what it writes on this
    /// one. A check is ended where it stands.
    pub(crate) fn settle(&mut self, progress: &mut dyn FnMut(u64, u64)) {
        let task = self.take();
        if let Some(mut task @ Task::Keep(_)) = task {
            loop {
                if let Task::Keep(keep) = &task {
                    let (done, total) = keep.progress();
                    progress(done, total);
                }
                if !self.shared.step(&mut task) {
                    return;
                }
            }
        }
    }

    fn take(&mut self) -> Option<Task> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Idle => None,
            State::Waiting(task) => Some(*task),
            State::Writing(thread) => {
                self.shared.stop.store(true, Ordering::Relaxed);
                // A thread that panicked has nothing left to finish; its message was printed.
                thread.join().ok().flatten()
            }
            State::Checking => {
                // It stops at the next range, which on a busy machine may be long after the answer is out.
                self.shared.stop.store(true, Ordering::Relaxed);
                None
            }
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.take();
    }
}
