//! Ranks that are real processes: this program again, started with the test that a rank runs.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout)] // helpers of tests are tests, and a rank tells its end

mod faults;
mod group;
mod mpirun;
mod schedule;
mod values;

use group::{Group, Script};

/// What each process of the tests below is. By itself it is a group of one.
#[test]
#[ignore = "the other tests start it, once for each rank"]
fn child_rank() {
    group::run_rank();
}

/// One schedule of every kind and type is in each seed; 50 seeds on each of four sizes.
#[test]
fn random_schedules_give_what_their_definition_says() {
    for ranks in [1, 2, 4, 8] {
        let seeds = (ranks as u64 * 1000, 50);
        Group::start(ranks, 60_000, |_| Script::Schedules { first: seeds.0, count: seeds.1 }).all_succeed();
    }
}

/// Slots are filled many times over, and the last one is not full.
#[test]
fn what_is_larger_than_a_slot_goes_in_parts() {
    Group::start(3, 60_000, |_| Script::Large).all_succeed();
}
