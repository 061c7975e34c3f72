//! What becomes of the others when a rank is gone, stops, or does something else.

use crate::group::{Group, Script, rank_command};
use crate::values::ScheduleRandom;
use std::fs;
use std::time::Duration;
use yirage_comm::{CommError, Communicator, LocalGroup, RankCondition, ReduceOp};

/// So many barriers, then something that does not fit.
pub(crate) fn run(comm: &mut Communicator, after: u64, fault: &str) -> Result<(), CommError> {
    (0..after).try_for_each(|_| comm.barrier())?;
    match fault {
        "abort" => std::process::abort(),
        "leave" => return Ok(()),
        "other" => comm.all_reduce(&mut [1.0f32; 5], ReduceOp::Sum)?,
        "sum" => comm.all_reduce(&mut [1i32; 4], ReduceOp::Sum)?,
        "max" => comm.all_reduce(&mut [1i32; 4], ReduceOp::Max)?,
        "longer" => comm.all_reduce(&mut [1i32; 7], ReduceOp::Sum)?,
        "float" => comm.all_reduce(&mut [1f32; 4], ReduceOp::Sum)?,
        "label" => {
            comm.set_label(6);
            comm.all_reduce(&mut [1i32; 4], ReduceOp::Sum)?;
        }
        "send" => comm.send(&[1u8, 2, 3], 1)?,
        "recv" => comm.recv(&mut [0u8; 3], 0)?,
        "recv_longer" => comm.recv(&mut [0u8; 4], 0)?,
        "recv_other" => comm.recv(&mut [0f32; 3], 0)?,
        other => panic!("no fault `{other}`"),
    }
    loop {
        comm.barrier()?;
    }
}

fn fault(after: u32, fault: &str) -> Script {
    Script::Fault { after, fault: fault.into() }
}

/// The deadline is far: only the others' processes tell it.
#[test]
fn a_killed_rank_is_found_before_the_deadline() {
    for ranks in [2, 4, 8] {
        let mut group = Group::start(ranks, 600_000, |_| Script::Forever);
        let victim = ranks - 1;
        group.signal(victim, "-KILL");
        group.end(victim);
        let errors = group.errors();
        for error in &errors[..victim] {
            let error = error.as_ref().unwrap();
            assert!(error.contains(&format!("rank {victim} is gone")), "{error}");
            assert!(error.contains("is dead"), "{error}");
        }
        assert_eq!(errors[victim], None);
    }
}

#[test]
fn a_rank_that_dies_or_leaves_by_itself_is_found() {
    for (how, told) in [("abort", "is dead"), ("leave", "has left")] {
        for victim in 0..3 {
            let script = |rank| if rank == victim { fault(5, how) } else { Script::Forever };
            let errors = Group::start(3, 600_000, script).errors();
            for (rank, error) in errors.iter().enumerate().filter(|(rank, _)| *rank != victim) {
                let error = error.as_ref().unwrap();
                assert!(error.contains(&format!("rank {victim} is gone")), "rank {rank}: {error}");
                // Who leaves does so before its process ends, and who looks later finds that dead.
                assert!(error.contains(told) || error.contains("is dead"), "rank {rank}: {error}");
                assert!(error.contains("barrier #5"), "rank {rank}: {error}");
            }
        }
    }
}

#[test]
fn a_stopped_rank_is_named_when_the_deadline_is_over() {
    let group = Group::start(3, 1500, |_| Script::Forever);
    // It has come before it is stopped, or not: both are told.
    group.signal(1, "-STOP");
    let mut group = group;
    for rank in [0, 2] {
        group.end(rank);
    }
    group.signal(1, "-CONT");
    let errors = group.errors();
    for rank in [0, 2] {
        let error = errors[rank].as_ref().unwrap();
        assert!(error.contains("rank 1 has not come within 1.5s"), "{error}");
        assert!(error.contains(") is stopped"), "{error}");
    }
    // Once it goes on it learns that the others have given up, or that they have gone.
    let error = errors[1].as_ref().unwrap();
    assert!(error.contains("has given up: ") || error.contains("is gone"), "{error}");
}

#[test]
fn different_calls_are_named_for_all_ranks() {
    let cases = [
        ("sum", "max", ["all_reduce(sum) #3 of 4 i32", "all_reduce(max) #3 of 4 i32"]),
        ("sum", "longer", ["all_reduce(sum) #3 of 4 i32", "all_reduce(sum) #3 of 7 i32"]),
        ("sum", "float", ["all_reduce(sum) #3 of 4 i32", "all_reduce(sum) #3 of 4 f32"]),
        ("sum", "label", ["all_reduce(sum) #3 of 4 i32", "all_reduce(sum) #3 of 4 i32 with label 6"]),
    ];
    for (most, one, told) in cases {
        let errors = Group::start(4, 600_000, |rank| fault(3, if rank == 2 { one } else { most })).errors();
        let wanted = format!(
            "the ranks do not do the same: rank 0 is in {0}, rank 1 is in {0}, rank 2 is in {1}, rank 3 is in {0}; \
             give all of them the same calls in the same order",
            told[0], told[1]
        );
        for error in errors {
            assert_eq!(error, Some(wanted.clone()));
        }
    }
}

#[test]
fn the_sides_of_a_message_are_compared() {
    for (receives, told) in [("recv_longer", "of 4 u8"), ("recv_other", "of 3 f32")] {
        let errors = Group::start(2, 600_000, |rank| fault(0, ["send", receives][rank])).errors();
        let wanted = format!(
            "the ranks do not do the same: rank 0 is in send(to rank 1) #0 of 3 u8, rank 1 is in recv(from rank 0) #0 {told}; \
             give all of them the same calls in the same order"
        );
        assert_eq!(errors, vec![Some(wanted.clone()), Some(wanted)]);
    }
}

/// One waits for a message, the other for everybody: neither ever comes to the other's place.
#[test]
fn ranks_that_wait_for_each_other_in_vain_learn_who_is_where() {
    let errors = Group::start(2, 700, |rank| fault(2, ["sum", "recv"][rank])).errors();
    let error = errors.iter().flatten().find(|error| error.contains("not come within")).unwrap();
    assert!(error.contains("in all_reduce(sum) #2 of 4 i32"), "{error}");
    assert!(error.contains("in recv(from rank 0) #0 of 3 u8"), "{error}");
    assert!(errors.iter().all(Option::is_some), "{errors:?}");
}

/// A process that never takes its place: it ends, or is another program.
#[test]
fn a_process_that_ends_before_it_has_come_is_dead() {
    let group = LocalGroup::new(2, Duration::from_secs(600)).unwrap();
    let mut comm = group.join(0).unwrap();
    let mut child = group.spawn(1, &mut std::process::Command::new("true")).unwrap();
    match comm.barrier().unwrap_err() {
        CommError::Lost { rank: 1, dump } => assert_eq!(dump.states[1].condition, RankCondition::Dead),
        other => panic!("{other}"),
    }
    child.wait().unwrap();
}

#[test]
fn nobody_comes_and_the_deadline_says_so() {
    let group = LocalGroup::new(3, Duration::from_millis(200)).unwrap();
    let mut comm = group.join(1).unwrap();
    match comm.all_reduce(&mut [0.5f32; 3], ReduceOp::Sum).unwrap_err() {
        CommError::Deadline { missing, dump, .. } => {
            assert_eq!(missing, [0, 2]);
            assert_eq!(dump.states[0].condition, RankCondition::Absent);
            assert_eq!((dump.call.sequence, dump.call.count), (0, 3));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn places_are_taken_once_and_arguments_are_checked() {
    let group = LocalGroup::new(1, Duration::from_secs(60)).unwrap();
    let mut comm = group.join(0).unwrap();
    for rank in [0, 1] {
        assert!(matches!(group.join(rank), Err(CommError::Setup { what: "joined", .. })), "{rank}");
    }
    for ranks in [0, 65] {
        assert!(
            matches!(LocalGroup::new(ranks, Duration::ZERO), Err(CommError::Setup { what: "made", .. })),
            "{ranks}"
        );
    }
    let refused = [
        comm.broadcast(&mut [0u8], 1),
        comm.send(&[0u8], 0),
        comm.recv(&mut [0u8], 7),
        comm.all_gather(&[0u8; 2], &mut [0; 3]),
        comm.reduce_scatter(&[0u8; 3], &mut [0; 2], ReduceOp::Sum),
        comm.shift(&[0u8; 3], &mut [0; 2], 0),
    ];
    for (at, refused) in refused.into_iter().enumerate() {
        assert!(matches!(refused, Err(CommError::Argument(_))), "{at}: {refused:?}");
    }
    // Nobody was told anything.
    comm.barrier().unwrap();
}

/// Threads as ranks: any of them goes away, or does something else, at any step of any schedule.
#[test]
fn every_schedule_with_a_fault_ends_with_an_error_on_all_ranks() {
    for seed in 0..200 {
        let mut random = ScheduleRandom::new(seed);
        let (ranks, after) = (2 + random.below(4) as usize, random.below(8));
        let (victim, kind) = (random.below(ranks as u64) as usize, random.below(3));
        let group = LocalGroup::new(ranks, Duration::from_secs(600)).unwrap();
        let mut comms: Vec<Communicator> = (0..ranks).map(|rank| group.join(rank).unwrap()).collect();
        std::thread::scope(|scope| {
            let each = comms.drain(..).map(|mut comm| {
                scope.spawn(move || {
                    let mut values = [comm.rank() as f32, 1.0, 2.0];
                    for step in 0..10 {
                        match (comm.rank() == victim && step == after, kind) {
                            (true, 0) => return Ok(()),
                            (true, 1) => comm.broadcast(&mut values, 0)?,
                            (true, _) => comm.all_reduce(&mut values[..2], ReduceOp::Sum)?,
                            (false, _) => comm.all_reduce(&mut values, ReduceOp::Sum)?,
                        }
                    }
                    Ok(())
                })
            });
            let each: Vec<_> = each.collect();
            for (rank, thread) in each.into_iter().enumerate() {
                let end: Result<(), CommError> = thread.join().unwrap();
                let left = rank == victim && kind == 0;
                assert_eq!(end.is_ok(), left, "seed {seed}, rank {rank} of {ranks}: {end:?}");
                if let Err(error) = end {
                    let wanted = if kind == 0 { format!("rank {victim} is gone") } else { "do not do the same".into() };
                    assert!(error.to_string().contains(&wanted), "seed {seed}, rank {rank}: {error}");
                }
            }
        });
    }
}

/// The memory has no name: neither while ranks run nor after one was killed is there a file.
#[test]
fn nothing_is_left_in_the_file_system() {
    let of_ours = || {
        let files = fs::read_dir("/dev/shm").map(|files| files.flatten().collect::<Vec<_>>()).unwrap_or_default();
        files.iter().filter(|file| file.file_name().to_string_lossy().contains("yirage")).count()
    };
    let group = Group::start(2, 600_000, |_| Script::Forever);
    assert_eq!(of_ours(), 0);
    group.signal(0, "-KILL");
    group.errors();
    assert_eq!(of_ours(), 0);
}

/// What is inherited by chance is not mapped.
#[test]
fn a_seat_without_its_memory_is_refused() {
    for seat in ["999,0,1000", "nonsense"] {
        let ended = rank_command().env("YIRAGE_RANK_SEAT", seat).output().unwrap();
        assert!(!ended.status.success(), "{seat}");
    }
}
