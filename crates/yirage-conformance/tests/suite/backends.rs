//! The conformance suite on every backend that is here; on the CPU at every instruction-set level.
#![allow(clippy::print_stdout)] // says what it ran

use std::collections::BTreeMap;
use std::sync::LazyLock;
use yirage_conformance::{CaseOutcome, ExpectedFailure, Suite};
use yirage_cpu_kernels::isa::Isa;
use yirage_hal::reference::Reference;
use yirage_hal::{Backend, OpenOptions};
use yirage_testkit::skipped;

static SUITE: LazyLock<Suite> = LazyLock::new(Suite::new);

/// What the CPU has no kernels for yet.
const CPU: &[ExpectedFailure] = &[];

/// `refused` are the general ops of which the target refuses some cases: how many, and why.
fn check(backend: &dyn Backend, options: &OpenOptions, expected: &[ExpectedFailure], refused: &[(&str, usize, &str)]) {
    let (device, _) = backend.open(0, options).unwrap();
    let reports = SUITE.run(&*device, expected);
    let failed: Vec<String> = reports
        .iter()
        .filter_map(
            |r| if let CaseOutcome::Failed(why) = &r.outcome { Some(format!("{}: {why}", r.name)) } else { None },
        )
        .collect();
    let passed = reports.iter().filter(|r| r.outcome == CaseOutcome::Passed).count();
    let left_out = SUITE.left_out(&*device);
    println!("{} {options:?}: {passed} of {} cases, {left_out} left out", backend.name(), reports.len());
    assert_eq!(reports.len() + left_out, SUITE.cases(), "each case ran, or is counted as left out");
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for r in reports.iter().filter(|r| matches!(r.outcome, CaseOutcome::Refused(_))) {
        *found.entry(r.name.split(':').next().unwrap()).or_default() += 1;
    }
    found.iter().for_each(|(op, count)| println!("  {count} of {op} are refused"));
    assert_eq!(found, refused.iter().map(|&(op, count, _)| (op, count)).collect(), "refused cases of each op");
    assert!(failed.is_empty(), "{} of {} cases failed:\n{}", failed.len(), reports.len(), failed.join("\n"));
    assert!(passed > 200);
}

fn at_every_level(threads: usize, guarded: bool) {
    let (here, lacking): (Vec<Isa>, Vec<Isa>) = Isa::ALL.iter().partition(|isa| isa.available());
    lacking.iter().for_each(|isa| skipped::note(&format!("level {isa}"), "this processor lacks it"));
    let check_one = |isa: &Isa| {
        let isa = Some(isa.name().into());
        check(
            &yirage_cpu::Cpu,
            &OpenOptions { threads: Some(threads), isa, guarded, ..OpenOptions::default() },
            CPU,
            &[],
        );
    };
    // Compiling a case takes longer than running it, and one thread compiles: two levels at a time keep two cores busy.
    std::thread::scope(|scope| {
        for half in 0..2 {
            let levels = here.iter().skip(half).step_by(2);
            scope.spawn(move || levels.for_each(check_one));
        }
    });
}

#[test]
fn cpu_at_every_level() {
    at_every_level(3, false);
}

#[test]
fn cpu_alone_at_every_level() {
    at_every_level(1, false);
}

/// Each value ends at a page that nobody may touch: a kernel that reads or writes past an end faults.
#[test]
#[cfg(unix)]
fn cpu_guarded_at_every_level() {
    at_every_level(2, true);
}

/// Variants of the kernels share pieces in other ways, with workers that a model's products have too.
#[test]
fn cpu_products_by_every_variant() {
    let suite = Suite::of(&["linear", "expert_linear"]);
    for threads in [1, 3] {
        let options = OpenOptions { threads: Some(threads), ..OpenOptions::default() };
        let (device, _) = yirage_cpu::Cpu.open(0, &options).unwrap();
        let variants = device.kernel_variants().unwrap();
        for answer in variants.questions().iter().flat_map(|q| &q.answers) {
            for report in suite.run_with_variant(&*device, answer) {
                let passed = !matches!(report.outcome, CaseOutcome::Failed(_));
                assert!(passed, "{answer}: {}: {:?}", report.name, report.outcome);
            }
        }
    }
}

#[test]
fn reference() {
    check(&Reference::new(), &OpenOptions::default(), &[], &[]);
}
