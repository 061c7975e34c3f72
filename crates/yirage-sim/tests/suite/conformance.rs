//! The conformance suite on a simulated accelerator: every op and case, from slots, weights and other ops.
#![allow(clippy::print_stdout)] // says what it ran

use std::time::Duration;
use yirage_conformance::{CaseOutcome, CaseReport, ExpectedFailure, Suite};
use yirage_hal::{Backend, OpenOptions};
use yirage_ir::Format;
use yirage_sim::{Settings, Sim};

#[test]
fn every_case_holds() {
    for settings in [Settings::with_pointers(), Settings::with_bindings(), Settings::with_operations()] {
        let expected = if settings.limits.bindings.is_some() { BOUND } else { &[] };
        let sim = Sim::with(Settings { devices: 2, seed: 7, delay: Duration::from_micros(20), ..settings });
        holds(sim, &Suite::new(), expected);
    }
}

/// Activations of 16 bits, which no other case has.
#[test]
#[ignore = "not every op that is listed has such cases yet, and no device was seen to pass those that there are"]
fn every_case_holds_with_activations_of_sixteen_bits() {
    for (settings, format) in [
        (Settings::with_pointers(), Format::BF16),
        (Settings::with_bindings(), Format::F16),
        (Settings::with_operations(), Format::F16),
    ] {
        let (suite, sim) = (Suite::with_activations(format), Sim::with(Settings { devices: 2, ..settings }));
        let ops = ["linear", "rms_norm", "rope", "attention", "kv_append", "softmax"];
        assert!(ops.iter().all(|op| suite.names().any(|name| name.starts_with(&format!("{op}: ")))));
        holds(sim, &suite, &[]);
    }
}

#[test]
fn every_case_holds_in_the_interpreter() {
    holds(interpreted(), &Suite::quick(), &[]);
}

#[test]
#[ignore = "takes minutes: .ci/long"]
fn every_case_in_all_its_ways_holds_in_the_interpreter() {
    holds(interpreted(), &Suite::new(), &[]);
}

fn interpreted() -> Sim {
    Sim::with(Settings { devices: 2, seed: 7, ..Settings::with_interpreter() })
}

/// The cases that are about a layout of activations that the kernels of every accelerator have not, or about more values than
/// one of them is bound to.
fn may_be_refused(name: &str) -> bool {
    name.contains(" q8a") || name.starts_with("quantize: ") || name.starts_with("concat: as many as can be")
}

/// What a device does not do whose kernels are bound to parts of buffers.
const BOUND: &[ExpectedFailure] =
    &[ExpectedFailure { prefix: "concat: as many as can be", reason: "a kernel is bound to 32 values at most" }];

fn holds(sim: Sim, suite: &Suite, expected: &[ExpectedFailure]) {
    let (device, _) = sim.open(1, &OpenOptions::default()).unwrap();
    let reports = suite.run(&*device, expected);
    let right = |r: &CaseOutcome| matches!(r, CaseOutcome::Passed | CaseOutcome::ExpectedFailure(_));
    let refused = |r: &CaseReport| matches!(r.outcome, CaseOutcome::Refused(_)) && may_be_refused(&r.name);
    let not = |r: &&CaseReport| !right(&r.outcome) && !refused(r);
    let others: Vec<String> = reports.iter().filter(not).map(|r| format!("{}: {:?}", r.name, r.outcome)).collect();
    println!("{} of {} cases", reports.len() - others.len(), reports.len());
    assert!(others.is_empty(), "{} cases:\n{}", others.len(), others.join("\n"));
    assert!(reports.len() > 200);
    drop(device);
    let held = sim.memory_stats();
    assert_eq!((held[0].bytes, held[0].allocations), (0, held[0].frees), "{held:?}");
}
