//! Ranks that MPI carries: this program again, started by `mpirun` of Open MPI and of MPICH.
//!
//! They run what ranks of shared memory run, and compare it with the same definition to the bit.

use crate::group::{Script, rank_command};
use std::process::{Command, Output};

const LAUNCHERS: [&str; 2] = ["mpirun.openmpi", "mpirun.mpich"];

/// Starts ranks; the last ones do `other`.
fn mpirun(launcher: &str, groups: &[(usize, Script)], deadline_ms: u64) -> Output {
    let mut command = Command::new(launcher);
    if launcher.ends_with("openmpi") {
        // More ranks than cores, as an administrator of a container.
        command.args(["--oversubscribe", "--allow-run-as-root", "--tag-output"]);
    }
    let program = rank_command();
    for (at, (ranks, script)) in groups.iter().enumerate() {
        if at > 0 {
            command.arg(":");
        }
        let variables =
            [format!("YIRAGE_COMM_TEST_SCRIPT={}", script.text()), format!("YIRAGE_COMM_TEST_MPI={deadline_ms}")];
        command.args(["-n", &ranks.to_string(), "env"]).args(variables);
        command.arg(program.get_program()).args(program.get_args());
    }
    command.output().unwrap()
}

fn shown(end: &Output) -> String {
    format!("{}\n{}\n{}", end.status, String::from_utf8_lossy(&end.stdout), String::from_utf8_lossy(&end.stderr))
}

#[test]
#[ignore = "needs mpirun.openmpi and mpirun.mpich"]
fn mpi_carries_what_shared_memory_carries() {
    for launcher in LAUNCHERS {
        for ranks in [1, 2, 4, 8] {
            let first = ranks as u64 * 1000;
            let end = mpirun(launcher, &[(ranks, Script::Schedules { first, count: 50 })], 120_000);
            assert!(end.status.success(), "{launcher}, {ranks} ranks: {}", shown(&end));
            let passed = String::from_utf8_lossy(&end.stdout).matches("1 passed").count();
            assert_eq!(passed, ranks, "{launcher}: {}", shown(&end));
            assert!(!shown(&end).contains("rank error"), "{launcher}: {}", shown(&end));
        }
        let end = mpirun(launcher, &[(3, Script::Large)], 120_000);
        assert!(end.status.success() && !shown(&end).contains("rank error"), "{launcher}: {}", shown(&end));
    }
}

#[test]
#[ignore = "needs mpirun.openmpi and mpirun.mpich"]
fn different_calls_are_named_for_all_ranks_of_mpi() {
    let fault = |fault: &str| Script::Fault { after: 3, fault: fault.into() };
    for launcher in LAUNCHERS {
        let end = mpirun(launcher, &[(3, fault("sum")), (1, fault("longer"))], 120_000);
        let told = "rank error: the ranks do not do the same: rank 0 is in all_reduce(sum) #3 of 4 i32, rank 1 is in \
                    all_reduce(sum) #3 of 4 i32, rank 2 is in all_reduce(sum) #3 of 4 i32, rank 3 is in all_reduce(sum) #3 of \
                    7 i32";
        let count = String::from_utf8_lossy(&end.stdout).matches(told).count();
        assert_eq!(count, 4, "{launcher}: {}", shown(&end));
    }
}

/// The first that gives up ends, and with it all.
#[test]
#[ignore = "needs mpirun.openmpi and mpirun.mpich"]
fn a_rank_of_mpi_that_is_elsewhere_is_named_when_the_deadline_is_over() {
    let fault = |fault: &str| Script::Fault { after: 2, fault: fault.into() };
    for launcher in LAUNCHERS {
        let end = mpirun(launcher, &[(1, fault("sum")), (1, fault("recv"))], 700);
        let told = "has not come within 700.0ms: rank 0 of 2 in all_reduce(sum) #2 of 4 i32; rank 1 after barrier #1";
        let other = "has not come within 700.0ms: rank 1 of 2 in recv(from rank 0) #0 of 3 u8; rank 0 after barrier #1";
        let text = shown(&end);
        assert!(text.contains(told) || text.contains(other), "{launcher}: {text}");
    }
}

/// Whoever started the processes ends them all.
#[test]
#[ignore = "needs mpirun.openmpi and mpirun.mpich"]
fn a_rank_of_mpi_that_dies_ends_all() {
    let abort = || Script::Fault { after: 5, fault: "abort".into() };
    for launcher in LAUNCHERS {
        let end = mpirun(launcher, &[(2, Script::Forever), (1, abort())], 600_000);
        assert!(!end.status.success(), "{launcher}: {}", shown(&end));
    }
}
