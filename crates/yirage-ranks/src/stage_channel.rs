//! What rank 0 has of the ranks that are stages of a pipeline: a line to each, on which it tells what to do and hears how it
//! went, while the others do something else.

use crate::channel::{RankWatch, no_thread};
use crate::group::{RankGroup, RankGroupError};
use crate::local::LocalRanks;
use crate::message::RankCommand;
use crate::tell::{PING, read_stage_answer};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};
use yirage_hal::HalError;

/// How long the stages have to hear that there is nothing more to do.
const END: Duration = Duration::from_secs(2);

/// The lines to all stages. The last who has it tells them that there is nothing more to do.
pub(crate) struct StageChannel {
    lines: Arc<StageLines>,
    next: AtomicU64,
    /// The processes of the stages, where this one has started them.
    _processes: Option<LocalRanks>,
}

struct StageLines {
    group: Arc<RankGroup>,
    watch: RankWatch,
    /// Of each rank behind this one.
    lines: Vec<StageLine>,
}

#[derive(Default)]
struct StageLine {
    state: Mutex<StageLineState>,
    /// What is told before the next command, as bytes.
    before: Mutex<Vec<u8>>,
}

#[derive(Default)]
struct StageLineState {
    /// When something was told last.
    last: Option<Instant>,
    /// Questions that were asked, and answers that have come, which come in the order of the questions.
    asked: u64,
    heard: u64,
    /// Answers that nobody has taken.
    answers: HashMap<u64, Result<Vec<u8>, HalError>>,
    /// Questions whose answers nobody wants.
    unwanted: Vec<u64>,
}

/// The question that an answer is of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct StageQuestion(u64);

impl StageChannel {
    /// Makes the other ranks of a group stages, which are told apart from now on.
    ///
    /// # Errors
    /// Ranks that do not come, and no thread.
    pub(crate) fn new(group: Arc<RankGroup>, processes: Option<LocalRanks>) -> Result<Arc<StageChannel>, HalError> {
        let lines = (1..group.ranks()).map(|_| StageLine::default()).collect();
        let lines = Arc::new(StageLines { group, watch: RankWatch::default(), lines });
        let mut message = Vec::new();
        RankCommand::BecomeStage.write(&mut message);
        lines.group.tell(&message).map_err(|error| lines.ended(&error))?;
        let weak = Arc::downgrade(&lines);
        thread::Builder::new().name("yirage-stages".into()).spawn(move || ping(&weak)).map_err(no_thread)?;
        Ok(Arc::new(StageChannel { lines, next: AtomicU64::new(1), _processes: processes }))
    }

    pub(crate) fn watch(&self) -> RankWatch {
        self.lines.watch.clone()
    }

    /// A number for something new.
    pub(crate) fn id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Tells a rank this before the next command.
    pub(crate) fn before_next(&self, rank: usize, command: &RankCommand) {
        command.write(&mut lock(&self.lines.line(rank).before));
    }

    /// Tells a rank something that it does not answer.
    ///
    /// # Errors
    /// What ends a group.
    pub(crate) fn tell(&self, rank: usize, command: &RankCommand) -> Result<(), HalError> {
        let mut state = lock(&self.lines.line(rank).state);
        self.lines.tell(rank, &mut state, command)
    }

    /// Asks a rank to do something, without waiting for it.
    ///
    /// # Errors
    /// What ends a group.
    pub(crate) fn ask(&self, rank: usize, command: &RankCommand) -> Result<StageQuestion, HalError> {
        let mut state = lock(&self.lines.line(rank).state);
        self.lines.tell(rank, &mut state, command)?;
        state.asked += 1;
        Ok(StageQuestion(state.asked))
    }

    /// Waits for what a rank says to a question.
    ///
    /// # Errors
    /// What the rank says, and what ends a group.
    pub(crate) fn answer(&self, rank: usize, question: StageQuestion) -> Result<Vec<u8>, HalError> {
        let mut state = lock(&self.lines.line(rank).state);
        while state.heard < question.0 {
            let message = self.lines.group.hear_one(rank).map_err(|error| self.lines.ended(&error))?;
            state.take(read_stage_answer(rank, message));
        }
        let missing = || Err(HalError::Device(format!("rank {rank} has answered question {} before", question.0)));
        state.answers.remove(&question.0).unwrap_or_else(missing)
    }

    /// Nobody waits for what a rank says to a question.
    pub(crate) fn forget(&self, rank: usize, question: StageQuestion) {
        let mut state = lock(&self.lines.line(rank).state);
        if state.answers.remove(&question.0).is_none() && question.0 > state.heard {
            state.unwanted.push(question.0);
        }
    }

    /// Has a rank do something, and waits for it.
    ///
    /// # Errors
    /// As [`StageChannel::answer`].
    pub(crate) fn does(&self, rank: usize, command: &RankCommand) -> Result<Vec<u8>, HalError> {
        let question = self.ask(rank, command)?;
        self.answer(rank, question)
    }
}

impl StageLineState {
    /// The next answer.
    fn take(&mut self, answer: Result<Vec<u8>, HalError>) {
        self.heard += 1;
        match self.unwanted.iter().position(|&question| question == self.heard) {
            Some(at) => drop(self.unwanted.swap_remove(at)),
            None => drop(self.answers.insert(self.heard, answer)),
        }
    }
}

impl StageLines {
    fn line(&self, rank: usize) -> &StageLine {
        &self.lines[rank - 1]
    }

    /// Tells a rank a command. Where answers are still to come the rank hears it when it has given them, so they are heard
    /// first.
    fn tell(&self, rank: usize, state: &mut StageLineState, command: &RankCommand) -> Result<(), HalError> {
        while state.heard < state.asked {
            let message = self.group.hear_one(rank).map_err(|error| self.ended(&error))?;
            state.take(read_stage_answer(rank, message));
        }
        let mut message = std::mem::take(&mut *lock(&self.line(rank).before));
        command.write(&mut message);
        state.last = Some(Instant::now());
        self.group.tell_one(&message, rank).map_err(|error| self.ended(&error))
    }

    /// What ends the group.
    fn ended(&self, error: &RankGroupError) -> HalError {
        let why = error.to_string();
        self.group.leave(&why);
        self.watch.ended(&why);
        HalError::Lost(why)
    }
}

impl Drop for StageChannel {
    fn drop(&mut self) {
        if let Ok(place) = self.lines.group.place().as_mut() {
            place.set_deadline(END);
        }
        for rank in 1..=self.lines.lines.len() {
            let mut state = lock(&self.lines.line(rank).state);
            // Whoever does not hear it is gone, or is ended by whoever has started it.
            let _ = self.lines.tell(rank, &mut state, &RankCommand::End);
        }
        self.lines.group.leave("there is nothing more to do");
        self.lines.watch.over();
    }
}

/// Hears of the stages while nobody tells them anything.
fn ping(lines: &Weak<StageLines>) {
    loop {
        thread::sleep(PING);
        let Some(lines) = lines.upgrade() else { return };
        for rank in 1..=lines.lines.len() {
            // Who tells something now hears of the rank by that, and so does who waits for an answer.
            let Ok(mut state) = lines.line(rank).state.try_lock() else { continue };
            if state.heard < state.asked || state.last.is_some_and(|last| last.elapsed() < PING) {
                continue;
            }
            if lines.group.place().is_err() || lines.tell(rank, &mut state, &RankCommand::Ping).is_err() {
                return;
            }
        }
    }
}

fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}
