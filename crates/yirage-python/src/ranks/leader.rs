//! A device whose other ranks this process starts: copies of the `yirage` command, which follow it.

use crate::backends::Chosen;
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::log::{Level, all};
use crate::process;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use yirage_comm::{CommError, MAX_LOCAL_RANKS};
use yirage_hal::{Device, OpenOptions};
use yirage_ranks::{LocalRanks, RankGroup, RankLeader, RankOpening, RankRole, StageOpening, dismiss, lead_stages};
use yirage_registry::{ProbeEnvironment, Registry, default_threads};

/// How long each wait for another rank lasts at most.
const DEADLINE: Duration = Duration::from_secs(30);

/// What the thread that starts ranks is asked.
type Start = Box<dyn FnOnce() + Send>;

/// A device that is rank 0 of so many, whose others are processes that it starts.
///
/// # Errors
/// An `OptionError` for a number of ranks that there cannot be; an `Unsupported` for a backend whose devices are no ranks; a
/// `RanksError` where the processes do not come.
pub(crate) fn leading_device(
    py: Python<'_>,
    chosen: &Chosen,
    ordinal: u32,
    options: OpenOptions,
    (ranks, role): (u32, RankRole),
) -> PyOutcome<Arc<dyn Device>> {
    process::check()?;
    let most = MAX_LOCAL_RANKS as u32;
    let argument = argument(role);
    if !(2..=most).contains(&ranks) {
        return Err(PyFailure::option(format!("{argument}={ranks}: a number of ranks from 1 to {most} is wanted")));
    }
    let Chosen::Native(name) = chosen else {
        return Err(PyFailure::unsupported(
            format!("{argument}={ranks}"),
            "the backend is a class of Python, which has no kernels",
        ));
    };
    let program: PathBuf = py.import("sys")?.getattr("executable")?.extract()?;
    let threads = options.threads.unwrap_or_else(|| (default_threads() / ranks as usize).max(1));
    let options = OpenOptions { threads: Some(threads), ..options };
    let (device, mut notes) = py.detach(|| opened(name, ordinal, &options, (ranks, role), program))?;
    process::own();
    let part = match role {
        RankRole::Shard => "its part of the model",
        RankRole::Stage => "some layers of the model",
    };
    notes.push(format!("{ranks} ranks of {threads} threads each, every one a process with {part}"));
    all(py, Level::Info, &notes)?;
    Ok(device)
}

/// The argument that asks for ranks of a role.
fn argument(role: RankRole) -> &'static str {
    match role {
        RankRole::Shard => "tp",
        RankRole::Stage => "pp",
    }
}

fn opened(
    name: &'static str,
    ordinal: u32,
    options: &OpenOptions,
    (ranks, role): (u32, RankRole),
    program: PathBuf,
) -> PyOutcome<(Arc<dyn Device>, Vec<String>)> {
    let registry = Registry::new(ProbeEnvironment::of_this_process());
    let unable =
        |error: yirage_registry::RegistryError| PyFailure::unsupported(format!("{}={ranks}", argument(role)), error);
    // What cannot be a rank is refused before any is started.
    let backend = match role {
        RankRole::Shard => registry.select_for_ranks(name).map_err(unable)?,
        RankRole::Stage => registry.select(name).map_err(unable)?.name(),
    };
    let (processes, group) = started(ranks, program)?;
    let own = match role {
        RankRole::Shard => registry.as_rank(backend, &group),
        RankRole::Stage => registry.select(backend),
    };
    let (device, notes) = match own.map_err(unable)?.open(ordinal, options) {
        Ok(opened) => opened,
        Err(error) => {
            // The others would say in their own words that this rank is gone.
            dismiss(&group);
            return Err(error.into());
        }
    };
    let opening = RankOpening { role, backend, ordinal, options };
    let device: Arc<dyn Device> = match role {
        RankRole::Shard => Arc::new(RankLeader::new(device, opening, group, Some(processes))?),
        RankRole::Stage => {
            let other = |stage: u32| {
                let ordinal = registry.device_of_stage(backend, ordinal, stage as usize);
                StageOpening { opening: RankOpening { ordinal, ..opening }, like: device.clone() }
            };
            let others = (1..ranks).map(other).collect();
            Arc::new(lead_stages(device.clone(), others, group, Some(processes))?.0)
        }
    };
    Ok((device, notes))
}

/// The processes of the other ranks. The thread that starts them lives as long as this process, since they end with it.
fn started(ranks: u32, program: PathBuf) -> PyOutcome<(LocalRanks, Arc<RankGroup>)> {
    static STARTER: OnceLock<Mutex<Sender<Start>>> = OnceLock::new();
    let starter = STARTER.get_or_init(|| {
        let (send, receive) = channel::<Start>();
        // Without the thread nobody answers, which is told below.
        let thread = std::thread::Builder::new().name("yirage-starts-ranks".into());
        let _ = thread.spawn(move || receive.into_iter().for_each(|start| start()));
        Mutex::new(send)
    });
    let (answer, answered) = channel();
    let start = move || {
        let command = || {
            let mut command = Command::new(&program);
            command.args(["-m", "yirage"]);
            command
        };
        let _ = answer.send(LocalRanks::start(ranks, DEADLINE, command));
    };
    let gone = || PyFailure::Ours(Class::Ranks, "no thread can be made that starts ranks".into());
    starter.lock().unwrap_or_else(PoisonError::into_inner).send(Box::new(start)).map_err(|_| gone())?;
    answered.recv().map_err(|_| gone())?.map_err(|error: CommError| PyFailure::Ours(Class::Ranks, error.to_string()))
}
