//! The two kinds of work on entries that wait until nobody waits for a token: each a sequence of short steps.

use super::Notice;
use crate::limits::CHECKED_BYTES;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};
use yirage_hal::{Device, WeightHandle};
use yirage_packed::{Check, Entry, Key, NewEntry, PackedError, Store, Writer};

/// What came of a step.
pub(super) enum Step {
    /// There is more to do.
    More,
    /// That was all.
    Done,
}

/// Work on an entry.
pub(super) enum Task {
    Keep(Keep),
    Inspect(Inspect),
}

impl Task {
    /// Does a piece of a few MiB. After an error there is nothing more to do.
    pub(super) fn step(&mut self) -> Result<Step, Notice> {
        match self {
            Task::Keep(keep) => keep.step().map_err(Notice::NotKept),
            Task::Inspect(inspect) => inspect.step(),
        }
    }
}

/// Writes an entry from weights in memory.
pub(super) struct Keep {
    device: Arc<dyn Device>,
    weights: Vec<WeightHandle>,
    state: State,
    done: u64,
    total: u64,
}

enum State {
    New(Store, NewEntry),
    Writing(Writer),
    Finished,
}

impl Keep {
    pub(super) fn new(store: Store, new: NewEntry, device: Arc<dyn Device>, weights: Vec<WeightHandle>) -> Keep {
        let total = new.images.iter().map(|(_, bytes)| bytes).sum();
        Keep { device, weights, state: State::New(store, new), done: 0, total }
    }

    /// Bytes written, and of all.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.done, self.total)
    }

    fn step(&mut self) -> Result<Step, String> {
        let mut writer = match std::mem::replace(&mut self.state, State::Finished) {
            State::New(store, new) => store.begin(new).map_err(|e| e.to_string())?,
            State::Writing(writer) => writer,
            State::Finished => return Ok(Step::Done),
        };
        let Some((image, _)) = writer.wants() else {
            writer.finish().map_err(|e| e.to_string())?;
            return Ok(Step::Done);
        };
        let bytes = self.device.image(&self.weights[image]).map_err(|e| e.to_string())?;
        self.done += writer.push(bytes).map_err(|e| e.to_string())?;
        self.state = State::Writing(writer);
        Ok(Step::More)
    }
}

/// Compares an entry in use with its checksums. An entry beyond the budget is checked from another place each time.
pub(super) struct Inspect {
    store: Store,
    key: Key,
    check: Check,
    left: u64,
}

impl Inspect {
    pub(super) fn new(store: Store, key: Key, entry: &Entry) -> Result<Inspect, PackedError> {
        let mut check = entry.check()?;
        if entry.header().image_bytes() > CHECKED_BYTES {
            check.begin_at(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64));
        }
        Ok(Inspect { store, key, check, left: CHECKED_BYTES })
    }

    fn step(&mut self) -> Result<Step, Notice> {
        match self.check.next_range() {
            Ok(Some(bytes)) if bytes <= self.left => {
                self.left -= bytes;
                Ok(Step::More)
            }
            Ok(_) => Ok(Step::Done),
            Err(damage) => {
                let left_behind = self.store.remove(self.key).err();
                let more = left_behind.map_or_else(String::new, |e| format!(" ({e})"));
                Err(Notice::Damaged(format!("{damage}{more}")))
            }
        }
    }
}
