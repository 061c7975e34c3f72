//! Starting ranks, and what each of them runs.

use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::Duration;
use yirage_comm::{CommError, Communicator, LocalGroup, MpiRanks, RankSeat};
use yirage_engine::{Engine, EngineOptions, Event, Request};
use yirage_hal::{Device, HalError, OpenOptions};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::{ExpertDivision, Precision};
use yirage_ranks::{RankGroup, RankLeader, RankOpening, RankRole, StageOpening, follow, lead_stages};
use yirage_registry::{ProbeEnvironment, Registry};
use yirage_testkit::json::{self, ids};
use yirage_testkit::tiny;

const SCRIPT: &str = "YIRAGE_RANKS_TEST_SCRIPT";
/// What stands before the error that a rank has ended with.
const ERROR: &str = "rank error: ";

/// The arguments of this program as a rank.
const RANK: [&str; 5] = ["--exact", "child_rank", "--ignored", "--nocapture", "--test-threads=1"];

/// What a rank does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RankScript<'a> {
    /// The inputs of a tiny model, whose tokens are known, with an engine on every rank, on simulated accelerators.
    Golden(&'a str),
    /// The same with one engine, which the other ranks follow, on this backend.
    Led(&'static str, &'a str),
    /// The same with the ranks as stages of a pipeline, which the first leads: the first on the CPU, the others on this backend.
    Stages(&'static str, &'a str),
    /// The same on the CPU, where each rank has experts of its own.
    OwnExperts(&'a str),
    /// One prompt after the other.
    Forever,
    /// The same, until so many tokens have come.
    AbortAfter(usize),
    /// A prompt of this length.
    Prompt(usize),
}

/// How a rank has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    Well,
    Error(String),
    Killed,
    Failed(String),
}

impl RankScript<'_> {
    fn text(self) -> String {
        match self {
            RankScript::Golden(model) => format!("golden {model}"),
            RankScript::Led(backend, model) => format!("{backend} {model}"),
            RankScript::Stages(backend, model) => format!("stages-{backend} {model}"),
            RankScript::OwnExperts(model) => format!("experts {model}"),
            RankScript::Forever => "abort 1000000000".into(),
            RankScript::AbortAfter(tokens) => format!("abort {tokens}"),
            RankScript::Prompt(len) => format!("prompt {len}"),
        }
    }
}

/// Starts ranks, and waits for all of them.
pub(crate) fn start<'a>(ranks: usize, deadline_ms: u64, script: impl Fn(usize) -> RankScript<'a>) -> Vec<Ended> {
    let group = LocalGroup::new(ranks, Duration::from_millis(deadline_ms)).unwrap();
    let of_rank = |rank: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(RANK);
        command.env(SCRIPT, script(rank).text()).stdout(Stdio::piped()).stderr(Stdio::piped());
        group.spawn(rank, &mut command).unwrap()
    };
    let children: Vec<_> = (0..ranks).map(of_rank).collect();
    children.into_iter().map(|child| ended(&child.wait_with_output().unwrap())).collect()
}

/// Starts ranks by a launcher of MPI; how many have passed, and what was said.
pub(crate) fn mpirun(launcher: &str, ranks: usize, script: RankScript<'_>) -> (usize, String) {
    let mut command = Command::new(launcher);
    if launcher.ends_with("openmpi") {
        command.args(["--oversubscribe", "--allow-run-as-root"]);
    }
    command.args(["-n", &ranks.to_string(), "env", &format!("{SCRIPT}={}", script.text())]);
    let end = command.arg(std::env::current_exe().unwrap()).args(RANK).output().unwrap();
    let text = format!("{}{}", String::from_utf8_lossy(&end.stdout), String::from_utf8_lossy(&end.stderr));
    (if end.status.success() { text.matches("1 passed").count() } else { 0 }, text)
}

fn ended(end: &Output) -> Ended {
    let text = String::from_utf8_lossy(&end.stdout);
    match text.lines().find_map(|line| line.strip_prefix(ERROR)) {
        Some(error) => Ended::Error(error.into()),
        None if end.status.success() => Ended::Well,
        None if end.status.code().is_none() => Ended::Killed,
        None => Ended::Failed(format!("{text}\n{}", String::from_utf8_lossy(&end.stderr))),
    }
}

/// Runs what the environment says.
pub(crate) fn run() {
    let group = Arc::new(RankGroup::new(joined().unwrap()));
    let script = std::env::var(SCRIPT).unwrap();
    let (word, argument) = script.split_once(' ').unwrap();
    let stages = word.starts_with("stages");
    let led = stages || matches!(word, "cpu" | "sim" | "experts");
    let backend = match word {
        "cpu" | "experts" => "cpu",
        word if word.starts_with("stages-") => "cpu",
        _ => "sim",
    };
    let model = if led || word == "golden" { argument } else { tiny::NAMES[0] };
    if led && group.rank() > 0 {
        let followed = follow(&group, &|opening| open(opening, &group));
        match followed {
            Err(error) if stages => println!("\n{ERROR}{error}"),
            followed => followed.unwrap(),
        }
        return;
    }
    let experts = if word == "experts" { ExpertDivision::Whole } else { ExpertDivision::Rows };
    let threads = OpenOptions { threads: Some(1), experts, ..OpenOptions::default() };
    let role = if stages { RankRole::Stage } else { RankRole::Shard };
    let opening = RankOpening { role, backend, ordinal: 0, options: &threads };
    let mut device = open(opening, &group).unwrap();
    if stages {
        let others = word.trim_start_matches("stages-");
        let opening = RankOpening { backend: others, ..opening };
        let like = if others == backend { device.clone() } else { open(opening, &group).unwrap() };
        let others = (1..group.ranks()).map(|_| StageOpening { opening, like: like.clone() }).collect();
        device = Arc::new(lead_stages(device, others, group, None).unwrap().0);
    } else if led {
        device = Arc::new(RankLeader::new(device, opening, group, None).unwrap());
    }
    let folder = tiny::model(model);
    let options =
        EngineOptions { kv: Some(Format::F32), precision: Precision::Exact, max_seqs: 2, ..EngineOptions::default() };
    let mut engine = Engine::load(&Checkpoint::open(&folder).unwrap(), device, &options, &mut |_, _| {}).unwrap();
    let done = match word {
        "abort" => forever(&mut engine, argument.parse().unwrap()),
        "prompt" => greedy(&mut engine, &vec![3; argument.parse().unwrap()], 4).map(drop),
        _ => golden(&mut engine, &json::read(&folder.join("golden.json"))),
    };
    if let Err(error) = done {
        println!("\n{ERROR}{error}");
    }
}

/// A device of this rank. A group of one has a device like any other, and so has a stage.
fn open(opening: RankOpening<'_>, group: &Arc<RankGroup>) -> Result<Arc<dyn Device>, HalError> {
    let registry = Registry::new(ProbeEnvironment::of_this_process());
    let backend = match opening.role {
        RankRole::Shard => registry.as_rank(opening.backend, group).unwrap(),
        RankRole::Stage => registry.select(opening.backend).unwrap(),
    };
    backend.open(0, opening.options).map(|(device, _)| device)
}

/// This process's place among those that the test, or mpirun, has started.
fn joined() -> Result<Communicator, CommError> {
    match (RankSeat::from_environment()?, MpiRanks::from_environment()) {
        (Some(seat), _) => seat.join(),
        (None, Some(mpi)) => mpi.join(Duration::from_secs(600)),
        (None, None) => panic!("this process was not started for a rank"),
    }
}

fn golden(engine: &mut Engine, golden: &serde_json::Value) -> Result<(), String> {
    for case in golden["cases"].as_array().unwrap() {
        let wanted = ids(&case["greedy16"]);
        assert_eq!(greedy(engine, &ids(&case["ids"]), wanted.len())?, wanted);
    }
    Ok(())
}

fn forever(engine: &mut Engine, most: usize) -> Result<(), String> {
    let mut tokens = 0;
    loop {
        tokens += greedy(engine, &[1, 2, 3, 4], 2)?.len();
        if tokens >= most {
            std::process::abort();
        }
    }
}

/// The tokens that follow a prompt, or the error that ended it.
fn greedy(engine: &mut Engine, prompt: &[u32], count: usize) -> Result<Vec<u32>, String> {
    let (seq, mut tokens) = (engine.add(Request::greedy(prompt.to_vec(), count as u32)).unwrap(), Vec::new());
    while !engine.is_idle() {
        for event in engine.step().map_err(|error| error.to_string())? {
            match event {
                Event::Token { seq: of, token, .. } if of == seq => tokens.push(token),
                Event::Finished { reason, .. } if format!("{reason:?}").contains("Error") => {
                    return Err(format!("{reason:?}"));
                }
                _ => {}
            }
        }
    }
    Ok(tokens)
}
