//! Writing an entry, in short steps that wait until nobody waits for a token.

use std::borrow::Cow;
use std::sync::Arc;
use yirage_hal::{Device, WeightHandle};
use yirage_packed::{NewEntry, PackedStore, PackedWriter};

/// Writes an entry from weights in memory.
pub(super) struct PackedEntryWriter {
    device: Arc<dyn Device>,
    weights: Vec<WeightHandle>,
    state: PackedWriterState,
    done: u64,
    total: u64,
    /// The image that is being written, by its place, where the device had to read it back.
    read_back: Option<(usize, Vec<u8>)>,
}

enum PackedWriterState {
    New(PackedStore, NewEntry),
    Writing(PackedWriter),
    Finished,
}

impl PackedEntryWriter {
    pub(super) fn new(
        store: PackedStore,
        new: NewEntry,
        device: Arc<dyn Device>,
        weights: Vec<WeightHandle>,
    ) -> PackedEntryWriter {
        let total = new.images.iter().map(|(_, bytes)| bytes).sum();
        PackedEntryWriter {
            device,
            weights,
            state: PackedWriterState::New(store, new),
            done: 0,
            total,
            read_back: None,
        }
    }

    /// Bytes written, and of all.
    pub(super) fn progress(&self) -> (u64, u64) {
        (self.done, self.total)
    }

    /// Does a piece of a few MiB; whether there are more. After an error there is nothing more to do.
    pub(super) fn step(&mut self) -> Result<bool, String> {
        let mut writer = match std::mem::replace(&mut self.state, PackedWriterState::Finished) {
            PackedWriterState::New(store, new) => store.begin(new).map_err(|e| e.to_string())?,
            PackedWriterState::Writing(writer) => writer,
            PackedWriterState::Finished => return Ok(false),
        };
        let Some((image, _)) = writer.wants() else {
            writer.finish().map_err(|e| e.to_string())?;
            return Ok(false);
        };
        if self.read_back.as_ref().is_none_or(|(of, _)| *of != image) {
            self.read_back = None;
            match self.device.image(&self.weights[image]).map_err(|e| e.to_string())? {
                Cow::Borrowed(bytes) => self.done += writer.push(bytes).map_err(|e| e.to_string())?,
                Cow::Owned(bytes) => self.read_back = Some((image, bytes)),
            }
        }
        if let Some((_, bytes)) = &self.read_back {
            self.done += writer.push(bytes).map_err(|e| e.to_string())?;
        }
        self.state = PackedWriterState::Writing(writer);
        Ok(true)
    }
}
