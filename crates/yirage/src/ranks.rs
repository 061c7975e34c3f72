//! Several ranks of a model, each a process: who starts them, and what a process that was started as one does.
//!
//! The process that the user talks to is rank 0. It alone reads options, models and requests, schedules and samples; the others
//! do on their devices what rank 0 does on its own (`yirage_ranks`), so all ranks see the same steps. With `--launch local`
//! opening a device starts the others as copies of this program, which end with it however it ends; with `--launch mpi` they
//! are there already, and have heard the same command line, of which they use nothing but this word. Unknown here: what is
//! computed.

use crate::failure::CliFailure;
use crate::options::{CliCommand, Layers, spec};
use crate::settings::refused;
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use yirage_comm::{Communicator, MAX_LOCAL_RANKS, MpiRanks, RankSeat};
use yirage_engine::{IndivisibleModel, RankDivision};
use yirage_hal::{Device, HalError, OpenOptions};
use yirage_model::Checkpoint;
use yirage_plan::ExpertDivision;
use yirage_ranks::{
    LocalRanks, RankGroup, RankHeartbeat, RankLeader, RankOpening, RankRole, RankWatch, StageOpening, dismiss, follow,
    lead_stages,
};
use yirage_registry::{ProbeEnvironment, Registry, RegistryError, default_threads};

/// This process's place under MPI, until a device is opened with it: a process joins once, whoever asks.
static MPI_PLACE: Mutex<Option<MpiPlace>> = Mutex::new(None);
/// What becomes of the ranks that this process has opened last.
static OPENED: Mutex<Option<RankWatch>> = Mutex::new(None);
/// Most ranks of this machine.
pub(crate) const MOST_LOCAL_RANKS: u32 = MAX_LOCAL_RANKS as u32;
/// How long ranks wait for each other where nobody says it.
const RANK_TIME: Duration = Duration::from_secs(30);
/// How long their end is waited for when the command is over: engines end on threads of their own.
const END: Duration = Duration::from_secs(5);
/// The program as whoever started it called it.
static PROGRAM: OnceLock<PathBuf> = OnceLock::new();

/// Rank 0's place under MPI, of which the others hear until they are told something.
struct MpiPlace {
    group: Arc<RankGroup>,
    heartbeat: RankHeartbeat,
}

/// What rank 0 has of the others when it opens its device.
struct JoinedRanks {
    /// Those that this process has started.
    processes: Option<LocalRanks>,
    group: Arc<RankGroup>,
    /// What those that wait hear meanwhile.
    heartbeat: Option<RankHeartbeat>,
}

/// Who starts the ranks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RankLauncher {
    Local,
    Mpi,
}

/// How many ranks compute a model, and who starts them.
pub(crate) struct RankSettings {
    ranks: u32,
    role: RankRole,
    experts: ExpertDivision,
    launcher: RankLauncher,
    deadline: Duration,
}

impl RankSettings {
    /// Reads the options; nothing where one device is to compute by itself.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option.
    pub(crate) fn resolve(layers: &Layers) -> Result<Option<RankSettings>, CliFailure> {
        let expected = format!("a number of ranks from 1 to {MAX_LOCAL_RANKS}");
        let asked = layers.number("tp", &expected, |n| (1..=MAX_LOCAL_RANKS as u32).contains(n))?;
        // What is not said follows from the number of ranks with experts of their own.
        let asked = asked.filter(|_| layers.raw_value("tp").is_some());
        let whole_experts = own_experts(layers, asked)?;
        let stages = stages(layers, asked.or(whole_experts).unwrap_or(1))?;
        let launcher = launcher(layers)?;
        let joined = MPI_PLACE.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|place| place.group.ranks());
        let ranks = match (launcher, joined) {
            (RankLauncher::Mpi, Some(ranks)) => ranks,
            _ => stages.or(asked).or(whole_experts).unwrap_or(1),
        };
        let experts = match whole_experts.filter(|&own| own > 1) {
            Some(own) if own != ranks => return Err(layers.wrong("ep", format!("{ranks}, as many as there are ranks"))),
            Some(_) => ExpertDivision::Whole,
            None => ExpertDivision::Rows,
        };
        let role = if stages.is_some() { RankRole::Stage } else { RankRole::Shard };
        let deadline = deadline(layers)?;
        Ok((ranks > 1).then_some(RankSettings { ranks, role, experts, launcher, deadline }))
    }

    /// So many ranks of this machine that share every layer; nothing where that is one device by itself.
    pub(crate) fn local(ranks: u32) -> Option<RankSettings> {
        let (role, experts) = (RankRole::Shard, ExpertDivision::Rows);
        let settings = RankSettings { ranks, role, experts, launcher: RankLauncher::Local, deadline: RANK_TIME };
        (ranks > 1).then_some(settings)
    }

    /// Refuses a model whose KV heads or experts the ranks cannot share, or that has not as many layers as there are stages; says
    /// of which caches each rank has all.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] with the numbers of ranks that there may be.
    pub(crate) fn check_division(
        &self,
        checkpoint: &Checkpoint,
        layers: &Layers,
    ) -> Result<Option<String>, CliFailure> {
        if self.role == RankRole::Stage {
            let refused = |why| CliFailure::Usage(format!("{}: {why}", layers.label("pp")));
            return RankDivision::check_stages(checkpoint, self.ranks)?.map(|()| None).map_err(refused);
        }
        let division = RankDivision::of(checkpoint, self.ranks, self.experts)?;
        let refused = |why: IndivisibleModel| {
            let option = if matches!(why, IndivisibleModel::Heads { .. }) && layers.raw_value("tp").is_some() {
                "tp"
            } else {
                "ep"
            };
            CliFailure::Usage(format!("{}: {why}", layers.label(option)))
        };
        Ok(division.map_err(refused)?.notice())
    }

    /// Opens a device on every rank; the second value holds what the user should know. Of several backends each is a stage's.
    ///
    /// # Errors
    /// [`CliFailure::Backend`] for a backend whose devices are no ranks, [`CliFailure::Ranks`] for ranks that do not come,
    /// and what the devices say.
    pub(crate) fn open(
        &self,
        backends: &[&'static str],
        ordinal: u32,
        options: &OpenOptions,
        layers: &Layers,
    ) -> Result<(Arc<dyn Device>, Vec<String>), CliFailure> {
        let registry = Registry::new(ProbeEnvironment::of_this_process());
        let backend = match self.role {
            RankRole::Shard => registry.select_for_ranks(backends[0])?,
            RankRole::Stage => backends[0],
        };
        let threads = options.threads.unwrap_or_else(|| (default_threads() / self.local_ranks()).max(1));
        let options = OpenOptions { threads: Some(threads), experts: self.experts, ..options.clone() };
        let JoinedRanks { processes, group, heartbeat } = self.join()?;
        let opening = RankOpening { role: self.role, backend, ordinal, options: &options };
        let opened = open_as_rank(&registry, opening, &group)?;
        drop(heartbeat);
        let (device, mut notes) = match opened {
            Ok(opened) => opened,
            Err(error) => {
                // The others would say in their own words that this rank is gone.
                dismiss(&group);
                return Err(refused(error, layers));
            }
        };
        let (device, watch): (Arc<dyn Device>, RankWatch) = match self.role {
            RankRole::Shard => {
                let leader = RankLeader::new(device, opening, group, processes)?;
                let watch = leader.watch();
                (Arc::new(leader), watch)
            }
            RankRole::Stage => {
                let others = self.other_stages(&registry, backends, opening, &device)?;
                let (pipeline, watch) = lead_stages(device, others, group, processes)?;
                (Arc::new(pipeline), watch)
            }
        };
        let part = match self.role {
            RankRole::Shard => "its part of the model",
            RankRole::Stage => "some layers of the model",
        };
        notes.push(format!("{} ranks of {threads} threads each, every one a process with {part}", self.ranks));
        *OPENED.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
        Ok((device, notes))
    }

    /// The stages behind the first, whose device this is. Devices of other backends are opened here as well, to know them.
    fn other_stages<'o>(
        &self,
        registry: &Registry,
        backends: &[&'static str],
        first: RankOpening<'o>,
        device: &Arc<dyn Device>,
    ) -> Result<Vec<StageOpening<'o>>, CliFailure> {
        let name = |rank: usize| backends[if backends.len() == 1 { 0 } else { rank }];
        let mut known: HashMap<&str, Arc<dyn Device>> = HashMap::from([(first.backend, device.clone())]);
        let stage = |rank: usize| {
            let backend = name(rank);
            let before = (0..rank).filter(|&before| name(before) == backend).count();
            let ordinal = registry.device_of_stage(backend, first.ordinal, before);
            let like = match known.get(backend) {
                Some(known) => known.clone(),
                None => {
                    let (like, _) = registry.select(backend)?.open(ordinal, first.options)?;
                    known.insert(backend, like.clone());
                    like
                }
            };
            Ok(StageOpening { opening: RankOpening { backend, ordinal, ..first }, like })
        };
        (1..self.ranks as usize).map(stage).collect()
    }

    /// How many stages there are; none where all ranks have a part of every layer.
    pub(crate) fn stages(&self) -> Option<u32> {
        (self.role == RankRole::Stage).then_some(self.ranks)
    }

    /// Ranks that share the processors here.
    fn local_ranks(&self) -> usize {
        let told = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<usize>().ok());
        let here = match self.launcher {
            RankLauncher::Local => None,
            RankLauncher::Mpi => told("OMPI_COMM_WORLD_LOCAL_SIZE").or_else(|| told("MPI_LOCALNRANKS")),
        };
        here.unwrap_or(self.ranks as usize).max(1)
    }

    /// This process's place, and the processes of the others where they are started for it.
    fn join(&self) -> Result<JoinedRanks, CliFailure> {
        match self.launcher {
            RankLauncher::Local => {
                let program = program()?;
                let started = LocalRanks::start(self.ranks, self.deadline, || Command::new(&program));
                let (processes, group) = started.map_err(|error| CliFailure::Ranks(error.to_string()))?;
                Ok(JoinedRanks { processes: Some(processes), group, heartbeat: None })
            }
            RankLauncher::Mpi => {
                let place = MPI_PLACE.lock().unwrap_or_else(PoisonError::into_inner).take();
                let used = || {
                    let why = "the ranks that mpirun has started open one device each, once; give one number of threads, of \
                               sequences and of tokens";
                    CliFailure::Usage(why.into())
                };
                let MpiPlace { group, heartbeat } = place.ok_or_else(used)?;
                Ok(JoinedRanks { processes: None, group, heartbeat: Some(heartbeat) })
            }
        }
    }
}

/// How many ranks have experts of their own: as many as there are ranks, or one.
fn own_experts(layers: &Layers, ranks: Option<u32>) -> Result<Option<u32>, CliFailure> {
    let most = MAX_LOCAL_RANKS as u32;
    let expected = match ranks {
        Some(1) => "1, as --tp says".into(),
        Some(ranks) => format!("1, or {ranks} as --tp says"),
        None => format!("a number of ranks from 1 to {most}"),
    };
    layers.number("ep", &expected, |n| (1..=most).contains(n) && (*n == 1 || ranks.is_none_or(|ranks| ranks == *n)))
}

/// How many pipeline stages there are, where it is more than one; so many ranks share each layer otherwise.
fn stages(layers: &Layers, sharing: u32) -> Result<Option<u32>, CliFailure> {
    let most = MAX_LOCAL_RANKS as u32;
    let expected = match sharing {
        0 | 1 => format!("a number of stages from 1 to {most}"),
        ranks => format!(
            "1, as {ranks} ranks share every layer (--tp, --ep): a rank has a part of all layers, or some whole"
        ),
    };
    let stages = layers.number("pp", &expected, |n| *n == 1 || sharing <= 1 && (1..=most).contains(n))?;
    Ok(stages.filter(|&stages| stages > 1))
}

fn launcher(layers: &Layers) -> Result<RankLauncher, CliFailure> {
    Ok(if layers.choice("launch")? == "mpi" { RankLauncher::Mpi } else { RankLauncher::Local })
}

fn deadline(layers: &Layers) -> Result<Duration, CliFailure> {
    const MOST: f64 = 24.0 * 3600.0;
    let seconds = layers.number("rank-time", "seconds above 0, at most a day", |s: &f64| *s > 0.0 && *s <= MOST)?;
    Ok(seconds.map_or(RANK_TIME, Duration::from_secs_f64))
}

/// Calls a function once the ranks of the device that was opened last compute no more, with the reason.
pub(crate) fn on_end(listener: impl FnOnce(&str) + Send + 'static) {
    if let Some(watch) = &*OPENED.lock().unwrap_or_else(PoisonError::into_inner) {
        watch.on_end(listener);
    }
}

/// Waits until the other ranks have heard that the command is over. Those of this command are ended with it otherwise; an MPI
/// wants to hear it from each.
pub(crate) fn wait_for_end() {
    // Where no device was opened, the others still wait to hear of one.
    if let Some(MpiPlace { group, heartbeat }) = MPI_PLACE.lock().unwrap_or_else(PoisonError::into_inner).take() {
        drop(heartbeat);
        dismiss(&group);
    }
    if let Some(watch) = OPENED.lock().unwrap_or_else(PoisonError::into_inner).take() {
        watch.wait_for_end(END);
    }
}

/// Keeps how this program was called, for copies of it.
pub(crate) fn remember_program(called: Option<&OsString>) {
    if let Some(called) = called {
        let _ = PROGRAM.set(PathBuf::from(called));
    }
}

/// The program that a rank runs. Where the command is a script of another program, that is the script.
fn program() -> Result<PathBuf, CliFailure> {
    let running = std::env::current_exe().map_err(|error| CliFailure::io(Path::new("/proc/self/exe"), error))?;
    let is_python = running.file_name().and_then(OsStr::to_str).is_some_and(|name| name.starts_with("python"));
    Ok(PROGRAM.get().filter(|_| is_python).cloned().unwrap_or(running))
}

/// Follows rank 0 to the end, in a process that [`RankSettings::open`] has started.
pub(crate) fn follow_if_started() -> Option<Result<(), CliFailure>> {
    let failed = |error: yirage_comm::CommError| CliFailure::Ranks(error.to_string());
    let seat = RankSeat::from_environment().map_err(failed).transpose()?;
    Some(seat.and_then(|seat| followed(seat.join().map_err(failed)?)))
}

/// Takes this process's place where mpirun has started it as a rank; true once it has followed rank 0 to the end.
///
/// # Errors
/// [`CliFailure::Usage`] where mpirun has not started it, or another number of ranks; [`CliFailure::Ranks`] for an MPI that
/// cannot be used, and for ranks that have lost each other.
pub(crate) fn follow_under_mpi(layers: &Layers, command: CliCommand) -> Result<bool, CliFailure> {
    if !spec("launch").commands.contains(&command) || launcher(layers)? == RankLauncher::Local {
        return Ok(false);
    }
    let label = layers.label("launch");
    let Some(ranks) = MpiRanks::from_environment() else {
        return Err(CliFailure::Usage(format!(
            "{label}: mpirun has not started this process; start it by `mpirun -n N yirage ... --launch mpi`, or take \
             --launch local --tp N"
        )));
    };
    let place = ranks.join(deadline(layers)?).map_err(|error| CliFailure::Ranks(error.to_string()))?;
    for option in ["tp", "pp"].into_iter().filter(|option| layers.raw_value(option).is_some()) {
        let expected = format!("{}, as many ranks as mpirun has started", place.ranks());
        // One stage is no pipeline, whoever shares its layers.
        let fits = |n: &usize| *n == place.ranks() || option == "pp" && *n == 1;
        // All know it, and rank 0 says it.
        match layers.number(option, &expected, fits) {
            Err(error) if place.rank() == 0 => return Err(error),
            Err(_) => return Ok(true),
            Ok(_) => {}
        }
    }
    if place.rank() > 0 {
        return followed(place).map(|()| true);
    }
    if place.ranks() == 1 {
        // It computes by itself, and has told MPI so.
        return Ok(false);
    }
    let group = Arc::new(RankGroup::new(place));
    let heartbeat = RankHeartbeat::new(group.clone())?;
    *MPI_PLACE.lock().unwrap_or_else(PoisonError::into_inner) = Some(MpiPlace { group, heartbeat });
    Ok(false)
}

/// Does what rank 0 says until there is nothing more to do.
fn followed(place: Communicator) -> Result<(), CliFailure> {
    // What asks the command to end asks rank 0, which ends the others.
    let _ = ctrlc::set_handler(|| {});
    let rank = place.rank();
    let group = Arc::new(RankGroup::new(place));
    let done = follow(&group, &|opening| open(opening, &group));
    done.map_err(|error| CliFailure::Ranks(format!("rank {rank}: {error}")))
}

/// The device of this rank.
fn open(opening: RankOpening<'_>, group: &Arc<RankGroup>) -> Result<Arc<dyn Device>, HalError> {
    let registry = Registry::new(ProbeEnvironment::of_this_process());
    let opened = open_as_rank(&registry, opening, group).map_err(|error| HalError::Unsupported {
        what: format!("the backend {}", opening.backend),
        why: error.to_string(),
    })?;
    opened.map(|(device, _)| device)
}

/// What opening a device gives, with what is to be told.
type Opened = Result<(Arc<dyn Device>, Vec<String>), HalError>;

/// Opens the device of a rank.
///
/// # Errors
/// A backend that has no device here, or none that could be such a rank.
fn open_as_rank(
    registry: &Registry,
    opening: RankOpening<'_>,
    group: &Arc<RankGroup>,
) -> Result<Opened, RegistryError> {
    let RankOpening { role, backend, ordinal, options } = opening;
    Ok(match role {
        // It knows which device its rank has.
        RankRole::Shard => registry.as_rank(backend, group)?.open(ordinal, options),
        RankRole::Stage => registry.select(backend)?.open(ordinal, options),
    })
}
