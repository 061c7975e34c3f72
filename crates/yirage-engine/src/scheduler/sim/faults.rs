//! The simulations must notice each planted bug.

use super::Driver;
use crate::kv::Fault;

/// Engines tried per bug, and steps on each.
const SEEDS: u64 = 200;
const STEPS: u64 = 200;

/// The first seed that notices `fault`, and how. Some bugs run into an assertion of the code itself.
fn noticed(fault: Fault, blind: bool) -> Option<(u64, String)> {
    (0..SEEDS).find_map(|seed| {
        let run = || Driver::new(seed, Some(fault), blind).run(STEPS);
        let what = std::panic::catch_unwind(run).unwrap_or_else(|_| Err("stopped by an assertion".to_owned()));
        Some((seed, what.err()?))
    })
}

/// The bugs that go unnoticed.
fn missed(faults: &[Fault], blind: bool) -> Vec<Fault> {
    let mut missed = Vec::new();
    for &fault in faults {
        match noticed(fault, blind) {
            Some((seed, what)) => eprintln!("{fault:?}: seed {seed}: {what}"),
            None => missed.push(fault),
        }
    }
    missed
}

#[test]
fn each_planted_bug_is_noticed() {
    let faults = [
        Fault::SlotOffByOne,
        Fault::WindowOneTokenEarly,
        Fault::WindowFreedForChunkEnd,
        Fault::HitWithoutReference,
        Fault::KeyWithoutParent,
        Fault::HitIgnoresWindow,
        Fault::FullHitLeavesNothing,
        Fault::PublishOneTokenEarly,
        Fault::EvictionKeepsKey,
        Fault::PreemptionKeepsTable,
        Fault::ChunkSkipsToken,
        Fault::CancelLeaks,
        Fault::BudgetPlusOne,
        Fault::PreemptOldest,
        Fault::ResumeForgetsOutput,
        Fault::SaltIgnored,
        Fault::RejectedStayPublished,
        Fault::RejectedStayCached,
        Fault::WindowFreedForDrafts,
        Fault::DraftBlocksLeak,
        Fault::DraftsEvict,
        Fault::DraftsIgnoreBudget,
        Fault::RunPassesStop,
    ];
    assert_eq!(missed(&faults, false), []);
}

/// The device's reads are an oracle of their own: most bugs of the cache show there when the bookkeeping's checker is
/// never asked. (Not those that corrupt reference counts, which stop at an arithmetic check first, nor early publishing,
/// which only misleads when its owner vanishes between two steps.)
#[test]
fn the_device_alone_notices_bugs_of_the_cache() {
    let faults = [
        Fault::SlotOffByOne,
        Fault::WindowOneTokenEarly,
        Fault::WindowFreedForChunkEnd,
        Fault::KeyWithoutParent,
        Fault::HitIgnoresWindow,
        Fault::EvictionKeepsKey,
        Fault::ChunkSkipsToken,
        Fault::CancelLeaks,
        Fault::ResumeForgetsOutput,
        Fault::SaltIgnored,
        Fault::RejectedStayCached,
        Fault::WindowFreedForDrafts,
        Fault::DraftsEvict,
        Fault::DraftsIgnoreBudget,
        Fault::RunPassesStop,
    ];
    assert_eq!(missed(&faults, true), []);
}
