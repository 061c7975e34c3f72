//! What rank 0 has of a group: its own device, the way to the others, and what is known of them.

use crate::group::{RankGroup, RankGroupError};
use crate::local::LocalRanks;
use crate::message::RankCommand;
use crate::tell::{PING, RankAnswer};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use yirage_hal::{Device, HalError};

/// How long the others have to hear that there is nothing more to do.
const END: Duration = Duration::from_secs(2);
/// Bytes of a thread's stack, as Rust's library makes it.
const STACK: u64 = 2 << 20;

/// What rank 0 has. The last who has it tells the others that there is nothing more to do.
pub(crate) struct RankChannel {
    /// The device of rank 0, which stays until the others have heard of the end.
    pub(crate) device: Arc<dyn Device>,
    line: Arc<RankLine>,
    next: AtomicU64,
    /// The processes of the others, where this one has started them.
    _processes: Option<LocalRanks>,
}

/// The way from rank 0 to the others.
struct RankLine {
    group: Arc<RankGroup>,
    /// When something was told last. Who holds it tells.
    turn: Mutex<Instant>,
    /// What is told before the next command, as bytes.
    before: Mutex<Vec<u8>>,
    watch: RankWatch,
}

/// Leave to tell the others something, and to wait for how it went.
pub(crate) struct RankTurn<'a> {
    line: &'a RankLine,
    last: MutexGuard<'a, Instant>,
}

/// What becomes of a group, for whoever wants to know.
#[derive(Clone, Default)]
pub struct RankWatch(Arc<Mutex<WatchState>>);

/// Called once, with why a group has ended.
type EndListener = Box<dyn FnOnce(&str) + Send>;

#[derive(Default)]
struct WatchState {
    ended: Option<String>,
    /// Whether rank 0 has let go of the others.
    over: bool,
    listener: Option<EndListener>,
}

impl RankWatch {
    /// Calls a function once the ranks compute no more, with the reason; at once where that is so already. The last one that
    /// was given is called.
    pub fn on_end(&self, listener: impl FnOnce(&str) + Send + 'static) {
        let mut state = lock(&self.0);
        match state.ended.clone() {
            Some(why) => {
                drop(state);
                listener(&why);
            }
            None => state.listener = Some(Box::new(listener)),
        }
    }

    /// Waits until nothing of this process has the ranks any more, so that all have heard of the end; false where that takes
    /// longer than this.
    pub fn wait_for_end(&self, most: Duration) -> bool {
        let until = Instant::now() + most;
        while !lock(&self.0).over {
            if Instant::now() >= until {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    /// Says that rank 0 has let go of the others.
    pub(crate) fn over(&self) {
        lock(&self.0).over = true;
    }

    /// Says that the ranks compute no more.
    pub(crate) fn ended(&self, why: &str) {
        let mut state = lock(&self.0);
        if state.ended.is_some() {
            return;
        }
        state.ended = Some(why.to_string());
        let listener = state.listener.take();
        drop(state);
        if let Some(listener) = listener {
            listener(why);
        }
    }
}

impl RankChannel {
    /// The way to the other ranks of a group, which are heard of from now on.
    ///
    /// # Errors
    /// No thread for that.
    pub(crate) fn new(
        device: Arc<dyn Device>,
        group: Arc<RankGroup>,
        processes: Option<LocalRanks>,
    ) -> Result<Arc<RankChannel>, HalError> {
        let (turn, before, watch) = (Mutex::new(Instant::now()), Mutex::default(), RankWatch::default());
        let line = Arc::new(RankLine { group, turn, before, watch });
        let weak = Arc::downgrade(&line);
        let channel = RankChannel { device, line, next: AtomicU64::new(1), _processes: processes };
        thread::Builder::new().name("yirage-ranks".into()).spawn(move || ping(&weak)).map_err(no_thread)?;
        Ok(Arc::new(channel))
    }

    pub(crate) fn watch(&self) -> RankWatch {
        self.line.watch.clone()
    }

    /// A number for something new.
    pub(crate) fn id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells this before the next command.
    pub(crate) fn before_next(&self, command: &RankCommand) {
        command.write(&mut lock(&self.line.before));
    }

    /// Waits until nobody else tells something.
    pub(crate) fn turn(&self) -> RankTurn<'_> {
        RankTurn { line: &self.line, last: lock(&self.line.turn) }
    }

    /// Has all other ranks do something that is done on this one.
    ///
    /// # Errors
    /// What a rank says of it, and what ends a group.
    pub(crate) fn all_do(&self, command: &RankCommand) -> Result<(), HalError> {
        let mut turn = self.turn();
        turn.tell(command)?;
        turn.answers(&Ok(()))
    }
}

impl RankLine {
    /// What ends the group.
    fn ended(&self, error: &RankGroupError) -> HalError {
        let why = error.to_string();
        self.group.leave(&why);
        self.watch.ended(&why);
        HalError::Lost(why)
    }
}

impl RankTurn<'_> {
    /// Tells the others a command.
    ///
    /// # Errors
    /// What ends a group.
    pub(crate) fn tell(&mut self, command: &RankCommand) -> Result<(), HalError> {
        let mut message = std::mem::take(&mut *lock(&self.line.before));
        command.write(&mut message);
        *self.last = Instant::now();
        self.line.group.tell(&message).map_err(|error| self.line.ended(&error))
    }

    /// Hears how it went on all ranks.
    ///
    /// # Errors
    /// What a rank says, this one first, and what ends a group.
    pub(crate) fn answers(&mut self, own: &RankAnswer) -> Result<(), HalError> {
        let answers = self.line.group.answer(own).map_err(|error| self.line.ended(&error))?;
        *self.last = Instant::now();
        own.clone()?;
        answers.into_iter().collect()
    }
}

impl Drop for RankChannel {
    fn drop(&mut self) {
        // Whoever hears of the others now is waited for.
        let _turn = lock(&self.line.turn);
        dismiss(&self.line.group);
        self.line.watch.over();
    }
}

/// Tells the others of a group, which follow this rank, that there is nothing more to do, and leaves it.
pub fn dismiss(group: &RankGroup) {
    let mut message = Vec::new();
    RankCommand::End.write(&mut message);
    if let Ok(place) = group.place().as_mut() {
        place.set_deadline(END);
    }
    // Whoever does not hear it is gone, or is ended by whoever has started it.
    let _ = group.tell(&message);
    group.leave("there is nothing more to do");
}

/// Lets the others of a group hear of this rank until it is dropped. They follow it and wait to be told something, which takes
/// as long as options, files and a network say.
pub struct RankHeartbeat {
    /// Dropped, the thread ends.
    beats: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl RankHeartbeat {
    /// Begins.
    ///
    /// # Errors
    /// [`HalError::OutOfMemory`] for no thread.
    pub fn new(group: Arc<RankGroup>) -> Result<RankHeartbeat, HalError> {
        let (beats, over) = sync_channel::<()>(0);
        let beat = move || {
            let mut message = Vec::new();
            RankCommand::Ping.write(&mut message);
            // What a rank that is gone means is said where something is to be done.
            while over.recv_timeout(PING) == Err(RecvTimeoutError::Timeout) && group.tell(&message).is_ok() {}
        };
        let thread = thread::Builder::new().name("yirage-heartbeat".into()).spawn(beat).map_err(no_thread)?;
        Ok(RankHeartbeat { beats: Some(beats), thread: Some(thread) })
    }
}

impl Drop for RankHeartbeat {
    fn drop(&mut self) {
        drop(self.beats.take());
        if let Some(thread) = self.thread.take() {
            // It ends by itself.
            let _ = thread.join();
        }
    }
}

/// Why there is no thread for the ranks.
pub(crate) fn no_thread(error: io::Error) -> HalError {
    HalError::OutOfMemory { pool: "threads", wanted: STACK, detail: format!("the ranks' thread: {error}") }
}

/// Hears of the others while nobody tells them anything.
fn ping(line: &Weak<RankLine>) {
    loop {
        thread::sleep(PING);
        let Some(line) = line.upgrade() else { return };
        // Who tells something now hears of the others by that.
        let Ok(last) = line.turn.try_lock() else { continue };
        if line.group.place().is_err() {
            return;
        }
        if last.elapsed() < PING {
            continue;
        }
        let mut turn = RankTurn { line: &line, last };
        if turn.tell(&RankCommand::Ping).is_err() {
            return;
        }
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
