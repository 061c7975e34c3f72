//! What goes wrong: each is an error within its deadline that names rank, collective and number.

use crate::fake::{DEADLINE, FakeCollectives, joined};
use crate::ranks::GroupRank;
use std::time::Duration;
use yirage_collectives::{CollectiveError, CollectiveVendor, DeviceCommunicator, DeviceSeat};
use yirage_comm::{CollectiveKind, ReduceOp};

const SUM: CollectiveKind = CollectiveKind::AllReduce(ReduceOp::Sum);

/// Waits as whoever waits for a stream does.
fn end_of(rank: &GroupRank, deadline: Duration) -> Result<(), CollectiveError> {
    let began = std::time::Instant::now();
    while !rank.is_done_within(5) {
        rank.communicator.is_well()?;
        if began.elapsed() > deadline {
            return Err(rank.communicator.is_late(deadline));
        }
    }
    rank.communicator.is_well()
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_call_that_fails_is_named_and_ends_the_communicator() {
    for (vendor, call) in [(CollectiveVendor::Nvidia, "ncclAllReduce"), (CollectiveVendor::Ascend, "HcclAllReduce")] {
        let fake = FakeCollectives::of(vendor);
        fake.group(1, |rank| {
            let (from, mut to) = ([1.0f32, 2.0], [0.0f32; 2]);
            rank.done(SUM, 1, &from, &mut to);
            fake.fail(call, 1, 2);
            let error = rank.submit(SUM, 1, &from, &mut to).unwrap_err();
            assert!(
                matches!(&error, CollectiveError::Call { call: failed, code: 2, .. } if *failed == call),
                "{error:?}"
            );
            let text = error.to_string();
            assert!(text.contains("rank 0 of 1 in all_reduce(sum) #1 of 2 f32") && text.contains(call), "{text}");
            let after = rank.submit(SUM, 1, &from, &mut to).unwrap_err();
            assert!(matches!(&after, CollectiveError::GivenUp { rank: 0, why, .. } if *why == text), "{after:?}");
        });
        let stats = fake.stats();
        assert_eq!((stats.aborted, stats.wrong), (u64::from(vendor == CollectiveVendor::Nvidia), 0), "{vendor:?}");
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn ranks_that_do_not_do_the_same_are_told_so_by_the_library() {
    for vendor in CollectiveVendor::ALL {
        let fake = FakeCollectives::of(vendor);
        fake.group(2, |rank| {
            let (from, mut to) = ([1.0f32; 8], [0.0f32; 8]);
            let op = if rank.rank() == 0 { ReduceOp::Sum } else { ReduceOp::Max };
            rank.submit(CollectiveKind::AllReduce(op), 1, &from, &mut to).unwrap();
            let error = loop {
                match rank.communicator.is_well() {
                    Ok(()) => std::thread::sleep(Duration::from_millis(1)),
                    Err(error) => break error,
                }
            };
            assert!(matches!(&error, CollectiveError::Failed { .. }), "{error:?}");
            let named = format!("rank {} of 2", rank.rank());
            assert!(error.to_string().contains(&named) && error.to_string().contains("#0 of 8 f32"), "{error}");
            assert!(rank.is_done_within(60_000), "what stands in the stream ends");
        });
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_rank_that_does_not_come_is_an_error_within_the_deadline() {
    for vendor in [CollectiveVendor::Nvidia, CollectiveVendor::MetaX, CollectiveVendor::Cambricon] {
        let fake = FakeCollectives::of(vendor);
        fake.group(2, |rank| {
            let (from, mut to) = ([1i32; 4], [0i32; 4]);
            rank.done(SUM, 1, &from, &mut to);
            if rank.rank() == 1 {
                return;
            }
            rank.submit(SUM, 1, &from, &mut to).unwrap();
            let error = end_of(rank, Duration::from_millis(100)).unwrap_err();
            let text = error.to_string();
            assert!(matches!(error, CollectiveError::Deadline { .. }), "{error:?}");
            assert!(text.contains("rank 0 of 2: all_reduce(sum) #1 of 4 i32") && text.contains("100.0ms"), "{text}");
            assert!(rank.is_done_within(60_000), "an abort lets go of what waits");
        });
        assert_eq!(fake.stats().aborted, 1, "{vendor:?}");
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_group_that_is_not_whole_within_the_deadline_is_none_and_what_comes_late_is_given_back() {
    for vendor in [CollectiveVendor::Amd, CollectiveVendor::Cambricon, CollectiveVendor::Ascend] {
        let fake = FakeCollectives::of(vendor);
        let library = fake.load().unwrap();
        let id = library.new_id().unwrap();
        let seat = DeviceSeat { rank: 0, ranks: 2, ordinal: 0 };
        let error = DeviceCommunicator::join(&library, &id, seat, Duration::from_millis(100), || Ok(())).unwrap_err();
        assert!(matches!(&error, CollectiveError::Join { rank: 0, ranks: 2, .. }), "{error:?}");
        assert!(error.to_string().contains("not all ranks have come within 100.0ms"), "{error}");
        drop(joined(&library, &id, 1, 2));
        fake.comes_to(|stats| stats.made == 2 && stats.ended == 2);
        fake.leaves_nothing();
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn ranks_that_say_different_sizes_are_refused() {
    let fake = FakeCollectives::of(CollectiveVendor::MooreThreads);
    let library = fake.load().unwrap();
    let id = library.new_id().unwrap();
    let join = |rank, ranks| {
        let seat = DeviceSeat { rank, ranks, ordinal: 0 };
        DeviceCommunicator::join(&library, &id, seat, DEADLINE, || Ok(()))
    };
    std::thread::scope(|scope| {
        let first = scope.spawn(|| join(0, 2).map(drop));
        let second = join(1, 3).map(drop);
        for refused in [first.join().unwrap(), second] {
            assert!(matches!(&refused, Err(CollectiveError::Join { .. })), "{refused:?}");
        }
    });
    assert!(matches!(join(2, 2), Err(CollectiveError::Join { why, .. }) if why.contains("below 2")));
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_device_that_cannot_be_made_current_is_named() {
    let fake = FakeCollectives::of(CollectiveVendor::Nvidia);
    let library = fake.load().unwrap();
    let id = library.new_id().unwrap();
    let seat = DeviceSeat { rank: 0, ranks: 1, ordinal: 0 };
    let error = DeviceCommunicator::join(&library, &id, seat, DEADLINE, || Err("no context".into())).unwrap_err();
    assert!(error.to_string().contains("no context"), "{error}");
    assert_eq!(fake.stats().made, 0);
}

/// Nothing of it comes to the library.
#[test]
#[ignore = "needs a compiler of C++"]
fn what_fits_no_collective_is_refused_before_it_is_submitted() {
    let fake = FakeCollectives::of(CollectiveVendor::Nvidia);
    fake.group(2, |rank| {
        let other = 1 - rank.rank() as u32;
        let own = rank.rank() as u32;
        let (from, mut to) = ([1.0f32; 6], [0.0f32; 6]);
        for (kind, rows, why) in [
            (CollectiveKind::Barrier, 1, "no elements"),
            (CollectiveKind::Broadcast { root: 2 }, 1, "below 2"),
            (CollectiveKind::Send { to: own }, 1, "itself"),
            (CollectiveKind::Recv { from: 2 }, 1, "below 2"),
            (CollectiveKind::Shift { by: 2 }, 1, "below 2"),
            (CollectiveKind::ReduceScatter(ReduceOp::Sum), 2, "multiple of 2"),
            (SUM, 2, "expected one row, got 2"),
            (CollectiveKind::Send { to: other }, 3, "expected one row, got 3"),
        ] {
            match rank.submit(kind, rows, &from, &mut to) {
                Err(CollectiveError::Argument(said)) => assert!(said.contains(why), "{kind}: {said}"),
                done => panic!("{kind}: {done:?}"),
            }
        }
        rank.submit::<f32>(SUM, 1, &[], &mut []).unwrap();
    });
    assert_eq!(fake.stats().calls, 0);
    fake.leaves_nothing();
}

#[test]
#[ignore = "needs a compiler of C++"]
fn an_identity_of_another_library_is_refused_with_its_size() {
    let (nccl, hccl) = (FakeCollectives::of(CollectiveVendor::Nvidia), FakeCollectives::of(CollectiveVendor::Ascend));
    let (nccl, hccl) = (nccl.load().unwrap(), hccl.load().unwrap());
    let error = hccl.id_of(nccl.new_id().unwrap().bytes()).unwrap_err().to_string();
    assert!(error.contains("4108") && error.contains("128"), "{error}");
}
