//! The conformance suite on a simulated accelerator: every op and case, from slots, weights and other ops.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything, and says what it ran

use std::time::Duration;
use yirage_conformance::{CaseOutcome, ExpectedFailure, Suite};
use yirage_hal::{Backend, OpenOptions};
use yirage_sim::{Settings, Sim};

#[test]
fn every_case_holds() {
    for settings in [Settings::with_pointers(), Settings::with_bindings(), Settings::with_operations()] {
        let expected = if settings.limits.bindings.is_some() { BOUND } else { &[] };
        holds(Sim::with(Settings { devices: 2, seed: 7, delay: Duration::from_micros(20), ..settings }), expected);
    }
}

/// What a device does not do whose kernels are bound to parts of buffers.
const BOUND: &[ExpectedFailure] =
    &[ExpectedFailure { prefix: "concat: as many as can be", reason: "a kernel is bound to 32 values at most" }];

fn holds(sim: Sim, expected: &[ExpectedFailure]) {
    let (device, _) = sim.open(1, &OpenOptions::default()).unwrap();
    let reports = Suite::new().run(&*device, expected);
    let right = |r: &CaseOutcome| matches!(r, CaseOutcome::Passed | CaseOutcome::ExpectedFailure(_));
    let not = |r: &&yirage_conformance::CaseReport| !right(&r.outcome);
    let others: Vec<String> = reports.iter().filter(not).map(|r| format!("{}: {:?}", r.name, r.outcome)).collect();
    println!("{} of {} cases", reports.len() - others.len(), reports.len());
    assert!(others.is_empty(), "{} cases:\n{}", others.len(), others.join("\n"));
    assert!(reports.len() > 200);
    drop(device);
    let held = sim.memory_stats();
    assert_eq!((held[0].bytes, held[0].allocations), (0, held[0].frees), "{held:?}");
}
