//! Writing an entry, in short steps that wait until nobody waits for a token.

use std::sync::Arc;
use yirage_hal::{Device, WeightHandle};
use yirage_packed::{NewEntry, Store, Writer};

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

    /// Does a piece of a few MiB; whether there are more. After an error there is nothing more to do.
    pub(super) fn step(&mut self) -> Result<bool, String> {
        let mut writer = match std::mem::replace(&mut self.state, State::Finished) {
            State::New(store, new) => store.begin(new).map_err(|e| e.to_string())?,
            State::Writing(writer) => writer,
            State::Finished => return Ok(false),
        };
        let Some((image, _)) = writer.wants() else {
            writer.finish().map_err(|e| e.to_string())?;
            return Ok(false);
        };
        let bytes = self.device.image(&self.weights[image]).map_err(|e| e.to_string())?;
        self.done += writer.push(bytes).map_err(|e| e.to_string())?;
        self.state = State::Writing(writer);
        Ok(true)
    }
}
