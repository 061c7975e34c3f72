//! Several ranks of a model, on systems that have none: Linux alone has the memory that processes share here.

use crate::failure::CliFailure;
use crate::options::{CliCommand, Layers};
use std::ffi::OsString;
use std::sync::Arc;
use yirage_hal::{Device, OpenOptions};
use yirage_model::Checkpoint;

/// How many ranks compute a model: here there is never more than one.
pub(crate) enum NoRanks {}

pub(crate) use NoRanks as RankSettings;

/// Most ranks of this machine.
pub(crate) const MOST_LOCAL_RANKS: u32 = 1;

impl NoRanks {
    /// Refuses more than one rank.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option.
    pub(crate) fn resolve(layers: &Layers) -> Result<Option<RankSettings>, CliFailure> {
        for option in ["tp", "ep", "pp"] {
            layers.number(option, "1, since there are ranks on Linux alone", |n: &u32| *n == 1)?;
        }
        match layers.choice("launch")? {
            "local" => Ok(None),
            _ => Err(layers.wrong("launch", "local, since there are ranks on Linux alone")),
        }
    }

    /// One device by itself: nobody can ask for more than [`MOST_LOCAL_RANKS`].
    pub(crate) fn local(_: u32) -> Option<RankSettings> {
        None
    }

    pub(crate) fn stages(&self) -> Option<u32> {
        match *self {}
    }

    pub(crate) fn check_division(&self, _: &Checkpoint, _: &Layers) -> Result<Option<String>, CliFailure> {
        match *self {}
    }

    pub(crate) fn open(
        &self,
        _: &[&'static str],
        _: u32,
        _: &OpenOptions,
        _: &Layers,
    ) -> Result<(Arc<dyn Device>, Vec<String>), CliFailure> {
        match *self {}
    }
}

pub(crate) fn on_end(_: impl FnOnce(&str) + Send + 'static) {}

pub(crate) fn wait_for_end() {}

pub(crate) fn remember_program(_: Option<&OsString>) {}

pub(crate) fn follow_if_started() -> Option<Result<(), CliFailure>> {
    None
}

pub(crate) fn follow_under_mpi(_: &Layers, _: CliCommand) -> Result<bool, CliFailure> {
    Ok(false)
}
