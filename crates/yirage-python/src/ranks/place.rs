//! This process's place among ranks that somebody has started: `python -m yirage.ranks`, or mpirun.

use crate::failure::{Class, PyFailure, PyOutcome};
use crate::process;
use pyo3::prelude::*;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use yirage_comm::{CommError, LocalGroup, MpiRanks, RankSeat};
use yirage_ranks::RankGroup;

/// What to do where a process was started for no rank.
const REMEDY: &str = "start its ranks by `python -m yirage.ranks -n N script.py`, or by `mpirun -n N python script.py`";

/// Taken once, by whoever asks first.
static PLACE: Mutex<Option<Arc<RankGroup>>> = Mutex::new(None);

fn failed(error: &CommError) -> PyFailure {
    PyFailure::Ours(Class::Ranks, error.to_string())
}

/// Leaves the group of this process, if it has one: called when the program ends, since an MPI wants to hear of it.
#[pyfunction]
pub(super) fn leave_ranks(py: Python<'_>) {
    // A fork has the place of its parent, and does not take it away.
    if process::check().is_err() {
        return;
    }
    py.detach(|| {
        if let Some(group) = PLACE.lock().unwrap_or_else(PoisonError::into_inner).take() {
            group.leave("the program has ended");
        }
    });
}

/// This process's place, as rank `rank` of `world_size` where those are said.
///
/// # Errors
/// A `RanksError` for a process that was started for no rank, and ranks that do not come; an `OptionError` for another rank or
/// another number of ranks than it was started for.
pub(super) fn place(
    world_size: Option<u32>,
    rank: Option<u32>,
    deadline: Option<Duration>,
) -> PyOutcome<Arc<RankGroup>> {
    process::check()?;
    let mut place = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
    let group = match &*place {
        Some(group) => group.clone(),
        None => {
            let group = Arc::new(RankGroup::new(joined(deadline)?));
            process::own();
            *place = Some(group.clone());
            group
        }
    };
    if let Some(deadline) = deadline {
        group.set_deadline(deadline);
    }
    let (own, all) = (group.rank() as u32, group.ranks());
    match (world_size.unwrap_or(all), rank.unwrap_or(own)) {
        (world, asked) if world == all && asked == own => Ok(group),
        (world, asked) => Err(PyFailure::option(format!(
            "rank {asked} of {world} is asked for, and this process was started as rank {own} of {all}"
        ))),
    }
}

/// This process's place, where somebody has started it as one of several ranks.
///
/// # Errors
/// As [`place`].
pub(super) fn place_if_started(world_size: u32, rank: Option<u32>) -> PyOutcome<Option<Arc<RankGroup>>> {
    let is_taken = PLACE.lock().unwrap_or_else(PoisonError::into_inner).is_some();
    let is_local = || RankSeat::from_environment().map_err(|error| failed(&error)).map(|seat| seat.is_some());
    if world_size <= 1 || !(is_taken || is_local()? || MpiRanks::from_environment().is_some()) {
        return Ok(None);
    }
    let group = place(None, None, None)?;
    // One alone has all ranks in its process.
    if group.ranks() == 1 { Ok(None) } else { place(Some(world_size), rank, None).map(Some) }
}

fn joined(deadline: Option<Duration>) -> PyOutcome<yirage_comm::Communicator> {
    if let Some(seat) = RankSeat::from_environment().map_err(|error| failed(&error))? {
        return seat.join().map_err(|error| failed(&error));
    }
    match MpiRanks::from_environment() {
        Some(mpi) => mpi.join(deadline.unwrap_or(yirage_comm::DEFAULT_DEADLINE)).map_err(|error| failed(&error)),
        None => Err(PyFailure::Ours(Class::Ranks, format!("this process was started for no rank: {REMEDY}"))),
    }
}

/// Starts a command as so many ranks on this machine, and waits for all of them: how each has ended, as a shell says it.
///
/// Raises:
///     RanksError: a command that cannot be started.
#[pyfunction]
pub(super) fn run_ranks(
    py: Python<'_>,
    ranks: usize,
    words: Vec<std::ffi::OsString>,
    deadline: f64,
) -> PyOutcome<Vec<i32>> {
    let deadline = seconds(deadline)?;
    let (program, arguments) =
        words.split_first().ok_or_else(|| PyFailure::option("a command for the ranks is wanted, and none is given"))?;
    py.detach(|| {
        let group = LocalGroup::new(ranks, deadline).map_err(|error| failed(&error))?;
        let mut children = Vec::new();
        for rank in 0..ranks {
            let child = group.spawn(rank, Command::new(program).args(arguments));
            match child {
                Ok(child) => children.push(child),
                Err(error) => {
                    children.iter_mut().for_each(|child: &mut std::process::Child| drop(child.kill()));
                    return Err(failed(&error));
                }
            }
        }
        let end = |child: &mut std::process::Child| match child.wait() {
            Ok(status) => std::os::unix::process::ExitStatusExt::signal(&status)
                .map_or_else(|| status.code().unwrap_or(1), |signal| 128 + signal),
            Err(_) => 1,
        };
        Ok(children.iter_mut().map(end).collect())
    })
}

/// A deadline that somebody has said.
///
/// # Errors
/// An `OptionError` for other than seconds above 0 and at most a day.
pub(super) fn seconds(deadline: f64) -> PyOutcome<Duration> {
    match deadline > 0.0 && deadline <= 24.0 * 3600.0 {
        true => Ok(Duration::from_secs_f64(deadline)),
        false => Err(PyFailure::option(format!("deadline={deadline}: seconds above 0, at most a day, are wanted"))),
    }
}
