//! Makers' collectives by libraries in software: `fake/`, built from one source with the names and numbers of each maker. Ranks are
//! threads, or processes: this program again, started with the test that a rank runs. The libraries are built by this system's
//! compiler of C++: tests that want one are ignored by default, and `.ci/run` runs them where there is one.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod fake;
mod faults;
mod processes;
mod ranks;
mod values;

use fake::FakeCollectives;
use yirage_collectives::{CollectiveError, CollectiveVendor, is_in_order};
use yirage_comm::{CollectiveKind, ReduceOp};
use yirage_probe::ProbeEnvironment;

/// What each process of the tests in `processes` is.
#[test]
#[ignore = "the other tests start it, once for each rank"]
fn child_rank() {
    processes::run_rank();
}

#[test]
#[ignore = "needs a compiler of C++"]
fn every_maker_has_every_collective_of_every_type() {
    for vendor in CollectiveVendor::ALL {
        let fake = FakeCollectives::of(vendor);
        for ranks in [1, 2, 3, 4] {
            fake.group(ranks, values::every_collective);
        }
        fake.leaves_nothing();
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn rows_are_a_collective_each_and_one_where_there_are_groups_of_calls() {
    for (vendor, groups) in
        [(CollectiveVendor::Nvidia, 4), (CollectiveVendor::MetaX, 4), (CollectiveVendor::Cambricon, 0)]
    {
        let fake = FakeCollectives::of(vendor);
        fake.group(2, |rank| values::rows(rank, 5));
        let stats = fake.stats();
        assert_eq!((stats.calls, stats.groups), (20, groups), "{vendor:?}");
        assert_eq!(stats.grouped, if groups > 0 { 20 } else { 0 }, "{vendor:?}");
        fake.leaves_nothing();
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn what_stands_in_a_stream_runs_in_its_order() {
    for vendor in [CollectiveVendor::Amd, CollectiveVendor::Ascend] {
        let fake = FakeCollectives::of(vendor);
        fake.group(3, values::one_behind_the_other);
        fake.leaves_nothing();
    }
}

/// Eleven shifts along rings of two, three and four ranks, also where one who sends waits until it is received from.
#[test]
#[ignore = "needs a compiler of C++"]
fn shifts_do_not_wait_for_each_other_in_a_ring() {
    for vendor in CollectiveVendor::ALL {
        let fake = FakeCollectives::of(vendor);
        for ranks in [2, 3, 4] {
            fake.group(ranks, values::shifts);
        }
        fake.leaves_nothing();
    }
}

/// The fake adds in another order than this project, so that a sum that is not in order is found out.
#[test]
#[ignore = "needs a compiler of C++"]
fn what_is_said_to_be_in_order_is_what_other_transports_give_to_the_bit() {
    for ranks in [2, 3, 4] {
        let fake = FakeCollectives::of(CollectiveVendor::Nvidia);
        fake.group(ranks, values::in_order);
    }
    let sum = CollectiveKind::AllReduce(ReduceOp::Sum);
    assert!(is_in_order(sum, 2) && !is_in_order(sum, 3));
    let sums = values::sums_of_three();
    assert_ne!(sums[0], sums[1], "the numbers of the test tell two orders apart");
}

#[test]
fn a_library_that_is_not_there_is_named_with_what_to_do() {
    let nowhere = ProbeEnvironment::new(std::path::Path::new("/nowhere"), Vec::<(&str, std::ffi::OsString)>::new());
    for vendor in CollectiveVendor::ALL {
        let error = vendor.load(&nowhere).unwrap_err().to_string();
        assert!(error.starts_with(vendor.title()) && error.contains("install"), "{error}");
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_library_that_is_too_old_or_another_makers_is_none() {
    let fake = FakeCollectives::of(CollectiveVendor::Nvidia);
    fake.set_version(2_708);
    let error = fake.load().unwrap_err().to_string();
    assert!(error.contains("version 2.7.8, and 2.10.0 is the oldest"), "{error}");
    fake.set_version(23_203);
    assert_eq!(fake.load().unwrap().title(), "NVIDIA NCCL 2.32.3");
    // MetaX has a libhccl.so too, with names of its own.
    let other = FakeCollectives::named(CollectiveVendor::Ascend, fake::Maker::Mccl);
    let error = other.load().unwrap_err();
    assert!(matches!(&error, CollectiveError::Library { why, .. } if why.contains("HcclGetRootInfo")), "{error}");
}
