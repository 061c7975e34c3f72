//! Starting ranks as processes, and what each of them runs.

use crate::{faults, schedule};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use yirage_comm::{CommError, Communicator, LocalGroup, MpiRanks, RankSeat};

const SCRIPT: &str = "YIRAGE_COMM_TEST_SCRIPT";
const MPI_DEADLINE: &str = "YIRAGE_COMM_TEST_MPI";
/// What stands before the error that a rank has ended with.
const ERROR: &str = "rank error: ";

/// What a rank does.
#[derive(Clone, Debug)]
pub(crate) enum Script {
    /// Random schedules of these seeds.
    Schedules { first: u64, count: u64 },
    /// Collectives of many parts.
    Large,
    /// Barriers until something goes wrong.
    Forever,
    /// So many barriers, then this fault.
    Fault { after: u32, fault: String },
}

impl Script {
    pub(crate) fn text(&self) -> String {
        match self {
            Script::Schedules { first, count } => format!("schedules {first} {count}"),
            Script::Large => "large".into(),
            Script::Forever => "forever".into(),
            Script::Fault { after, fault } => format!("fault {after} {fault}"),
        }
    }
}

/// Runs what the environment says.
pub(crate) fn run_rank() {
    let mut comm = joined().unwrap();
    let script = std::env::var(SCRIPT).unwrap_or_else(|_| "schedules 1 5".into());
    let words: Vec<&str> = script.split(' ').collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let done = match words[0] {
        "schedules" => (number(1)..number(1) + number(2)).try_for_each(|seed| schedule::run(&mut comm, seed)),
        "large" => schedule::large(&mut comm),
        "forever" => forever(&mut comm),
        "fault" => faults::run(&mut comm, number(1), words[2]),
        other => panic!("no script `{other}`"),
    };
    if let Err(error) = done {
        println!("\n{ERROR}{error}");
        // Once broken, it stays so, and for the same reason.
        assert_eq!(comm.barrier(), Err(error));
    }
}

/// This process's place: in shared memory, among MPI's processes, or alone.
fn joined() -> Result<Communicator, CommError> {
    if let Ok(deadline) = std::env::var(MPI_DEADLINE) {
        let mpi = MpiRanks::from_environment().expect("a process that mpirun has started");
        return mpi.join(Duration::from_millis(deadline.parse().unwrap()));
    }
    match RankSeat::from_environment()? {
        Some(seat) => seat.join(),
        None => LocalGroup::new(1, Duration::from_secs(60))?.join(0),
    }
}

fn forever(comm: &mut Communicator) -> Result<(), CommError> {
    loop {
        comm.barrier()?;
    }
}

/// Processes that are a group.
pub(crate) struct Group {
    children: Vec<Child>,
}

impl Group {
    pub(crate) fn start(ranks: usize, deadline_ms: u64, script: impl Fn(usize) -> Script) -> Group {
        let group = LocalGroup::new(ranks, Duration::from_millis(deadline_ms)).unwrap();
        let start = |rank: usize| {
            let mut command = rank_command();
            command.env(SCRIPT, script(rank).text()).stdout(Stdio::piped()).stderr(Stdio::piped());
            group.spawn(rank, &mut command).unwrap()
        };
        Group { children: (0..ranks).map(start).collect() }
    }

    pub(crate) fn signal(&self, rank: usize, name: &str) {
        let sent = Command::new("kill").args([name, &self.children[rank].id().to_string()]).status().unwrap();
        assert!(sent.success(), "{name}");
    }

    /// Waits for a rank to end.
    pub(crate) fn end(&mut self, rank: usize) {
        self.children[rank].wait().unwrap();
    }

    pub(crate) fn all_succeed(self) {
        for (rank, end) in self.ends().into_iter().enumerate() {
            assert!(end.status.success() && error_of(&end).is_none(), "rank {rank}: {}", shown(&end));
        }
    }

    /// What ranks have ended with: the error of each that has ended by itself with one.
    pub(crate) fn errors(self) -> Vec<Option<String>> {
        self.ends().iter().map(error_of).collect()
    }

    fn ends(self) -> Vec<Output> {
        self.children.into_iter().map(|child| child.wait_with_output().unwrap()).collect()
    }
}

/// This program, as the process of a rank.
pub(crate) fn rank_command() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child_rank", "--ignored", "--nocapture", "--test-threads=1"]);
    command
}

fn error_of(end: &Output) -> Option<String> {
    let text = String::from_utf8_lossy(&end.stdout);
    text.lines().find_map(|line| line.strip_prefix(ERROR)).map(String::from)
}

fn shown(end: &Output) -> String {
    format!("{}\n{}\n{}", end.status, String::from_utf8_lossy(&end.stdout), String::from_utf8_lossy(&end.stderr))
}
