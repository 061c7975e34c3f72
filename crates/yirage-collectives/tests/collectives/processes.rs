//! Ranks that are processes.

use crate::fake::{DEADLINE, FakeCollectives, file_name, joined, streams};
use crate::ranks::GroupRank;
use crate::values;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use yirage_collectives::CollectiveVendor;
use yirage_comm::{CollectiveKind, ReduceOp};
use yirage_probe::DriverLibrary;

const RANK: &str = "YIRAGE_COLLECTIVES_TEST_RANK";
const FOLDER: &str = "YIRAGE_COLLECTIVES_TEST_FOLDER";

/// Runs what the environment says; by itself nothing.
pub(crate) fn run_rank() {
    let Ok(told) = std::env::var(RANK) else { return };
    let words: Vec<usize> = told.split(' ').map(|word| word.parse().unwrap()).collect();
    let &[rank, ranks, vendor, ends_early] = &words[..] else { panic!("{told}") };
    let (vendor, folder) = (CollectiveVendor::ALL[vendor], std::env::var(FOLDER).unwrap());
    let folder = Path::new(&folder);
    let library = FakeCollectives::at(vendor, folder);
    let id = identity(&library, folder, rank);
    let streams = streams(&DriverLibrary::at(&folder.join(file_name(vendor))).unwrap());
    let rank = GroupRank::new(joined(&library, &id, rank, ranks), streams, rank as u32);
    values::every_collective(&rank);
    values::shifts(&rank);
    if ends_early == rank.rank() {
        std::process::abort();
    }
    if ends_early < ranks {
        survive(&rank);
    }
}

/// The first rank makes it, and the others find it in a file.
fn identity(
    library: &yirage_collectives::DeviceCollectives,
    folder: &Path,
    rank: usize,
) -> yirage_collectives::GroupId {
    let file = folder.join("identity");
    if rank == 0 {
        let id = library.new_id().unwrap();
        std::fs::write(folder.join("identity.part"), id.bytes()).unwrap();
        std::fs::rename(folder.join("identity.part"), file).unwrap();
        return id;
    }
    let until = Instant::now() + DEADLINE;
    while !file.exists() {
        assert!(Instant::now() < until, "no identity");
        std::thread::sleep(Duration::from_millis(2));
    }
    library.id_of(&std::fs::read(file).unwrap()).unwrap()
}

/// A rank whose neighbour is gone ends its wait by its deadline.
fn survive(rank: &GroupRank) {
    let (from, mut to) = ([1.0f32; 4], [0.0f32; 4]);
    rank.submit(CollectiveKind::AllReduce(ReduceOp::Sum), 1, &from, &mut to).unwrap();
    assert!(!rank.is_done_within(100));
    let error = rank.communicator.is_late(Duration::from_millis(100)).to_string();
    assert!(error.contains("all_reduce(sum)") && error.contains("another rank is gone"), "{error}");
    assert!(rank.is_done_within(60_000));
}

fn start(fake: &FakeCollectives, vendor: CollectiveVendor, ranks: usize, ends_early: usize) -> Vec<Child> {
    let number = CollectiveVendor::ALL.iter().position(|other| *other == vendor).unwrap();
    let start = |rank: usize| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "child_rank", "--ignored", "--nocapture", "--test-threads=1"]);
        command.env(RANK, format!("{rank} {ranks} {number} {ends_early}")).env(FOLDER, fake.folder());
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    (0..ranks).map(start).collect()
}

fn ends(children: Vec<Child>) -> Vec<Output> {
    children.into_iter().map(|child| child.wait_with_output().unwrap()).collect()
}

#[test]
#[ignore = "needs a compiler of C++"]
fn processes_have_what_threads_have() {
    for vendor in [CollectiveVendor::Nvidia, CollectiveVendor::Cambricon, CollectiveVendor::Ascend] {
        let fake = FakeCollectives::of(vendor);
        for (rank, end) in ends(start(&fake, vendor, 3, usize::MAX >> 1)).iter().enumerate() {
            assert!(end.status.success(), "{vendor:?}, rank {rank}: {}", String::from_utf8_lossy(&end.stderr));
        }
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_process_that_dies_ends_the_others_by_their_deadline() {
    let fake = FakeCollectives::of(CollectiveVendor::Nvidia);
    let ends = ends(start(&fake, CollectiveVendor::Nvidia, 3, 1));
    for (rank, end) in ends.iter().enumerate() {
        assert_eq!(end.status.success(), rank != 1, "rank {rank}: {}", String::from_utf8_lossy(&end.stderr));
    }
}
