//! A device as one rank of those that a program's processes are.

use super::place::place_if_started;
use crate::backends::Chosen;
use crate::failure::{PyFailure, PyOutcome};
use crate::log::{Level, all};
use crate::process;
use pyo3::prelude::*;
use std::sync::Arc;
use yirage_hal::{Device, OpenOptions};
use yirage_persistent::KernelBuilder;
use yirage_ranks::RankGroup;
use yirage_registry::{ProbeEnvironment, Registry, default_threads};

/// A process's place among the ranks that compute something together.
#[derive(Clone)]
pub(crate) struct RankMembership(Arc<RankGroup>);

impl RankMembership {
    /// This process's rank, from 0.
    pub(crate) fn rank(&self) -> usize {
        self.0.rank()
    }

    /// Compares a kernel with those of the other ranks, which come to this at the same place.
    ///
    /// # Errors
    /// As `KernelBuilder::meet`.
    pub(crate) fn meet(&self, kernel: &KernelBuilder) -> PyOutcome<()> {
        Ok(kernel.meet(&self.0)?)
    }
}

/// A device of its own as this process's rank of so many, where somebody has started the process as one of several ranks:
/// `python -m yirage.ranks`, or mpirun.
///
/// # Errors
/// An `OptionError` for another place than it was started for, an `Unsupported` for a backend whose devices are no ranks, and
/// what opening meets.
pub(crate) fn member_device(
    py: Python<'_>,
    chosen: &Chosen,
    ordinal: u32,
    options: OpenOptions,
    (world_size, rank): (u32, Option<u32>),
) -> PyOutcome<Option<(Arc<dyn Device>, RankMembership)>> {
    process::check()?;
    let Some(group) = py.detach(|| place_if_started(world_size, rank))? else { return Ok(None) };
    let ranks = group.ranks();
    let Chosen::Native(name) = chosen else {
        let why = "the backend is a class of Python, which has no kernels";
        return Err(PyFailure::unsupported(format!("a rank of {ranks} processes"), why));
    };
    let threads = options.threads.unwrap_or_else(|| (default_threads() / ranks as usize).max(1));
    let options = OpenOptions { threads: Some(threads), ..options };
    let (device, notes) = py.detach(|| {
        let registry = Registry::new(ProbeEnvironment::of_this_process());
        let unable = |error: yirage_registry::RegistryError| {
            PyFailure::unsupported(format!("a rank of {ranks} processes"), error)
        };
        let backend = registry.select_for_ranks(name).map_err(unable)?;
        Ok::<_, PyFailure>(registry.as_rank(backend, &group).map_err(unable)?.open(ordinal, &options)?)
    })?;
    process::own();
    all(py, Level::Info, &notes)?;
    Ok(Some((device, RankMembership(group))))
}
