//! The conformance suite on a simulated accelerator: every op and case, from slots, weights and other ops.
#![allow(clippy::unwrap_used, clippy::print_stdout)] // a test may stop at anything, and says what it ran

use std::time::Duration;
use yirage_conformance::{CaseOutcome, Suite};
use yirage_hal::{Backend, OpenOptions};
use yirage_sim::{Settings, Sim};

#[test]
fn every_case_holds() {
    for settings in [Settings::with_pointers(), Settings::with_bindings(), Settings::with_operations()] {
        holds(Sim::with(Settings { devices: 2, seed: 7, delay: Duration::from_micros(20), ..settings }));
    }
}

fn holds(sim: Sim) {
    let (device, _) = sim.open(1, &OpenOptions::default()).unwrap();
    let reports = Suite::new().run(&*device, &[]);
    let not = |r: &&yirage_conformance::CaseReport| r.outcome != CaseOutcome::Passed;
    let others: Vec<String> = reports.iter().filter(not).map(|r| format!("{}: {:?}", r.name, r.outcome)).collect();
    println!("{} of {} cases", reports.len() - others.len(), reports.len());
    assert!(others.is_empty(), "{} cases:\n{}", others.len(), others.join("\n"));
    assert!(reports.len() > 200);
    drop(device);
    let held = sim.memory_stats();
    assert_eq!((held[0].bytes, held[0].allocations), (0, held[0].frees), "{held:?}");
}
