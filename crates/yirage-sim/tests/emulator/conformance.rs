//! The conformance suite by kernels as C++: every op and case.

use crate::recorded;
use std::time::Instant;
use yirage_conformance::{CaseOutcome, CaseReport, Suite};
use yirage_hal::{Backend, OpenOptions};
use yirage_kir::render::CDialect;
use yirage_sim::{Settings, Sim};

/// The cases that are about a layout of activations that these kernels have not, or about more values than one of them is
/// bound to.
fn may_be_refused(name: &str) -> bool {
    name.contains(" q8a") || name.starts_with("quantize: ") || name.starts_with("concat: as many as can be")
}

fn holds(suite: &Suite, dialects: &[CDialect]) {
    let kernels = recorded::of_suite(suite);
    for &dialect in dialects {
        let began = Instant::now();
        let sim = Sim::with(Settings { seed: 7, ..Settings::with_emulator(dialect) });
        sim.emulator().unwrap().compile(&kernels).unwrap();
        let compiled = began.elapsed();
        let reports = suite.run(&*sim.open(0, &OpenOptions::default()).unwrap().0, &[]);
        let refused = |r: &CaseReport| matches!(r.outcome, CaseOutcome::Refused(_)) && may_be_refused(&r.name);
        let wrong = reports.iter().filter(|r| r.outcome != CaseOutcome::Passed && !refused(r));
        let wrong: Vec<String> = wrong.map(|r| format!("{}: {:?}", r.name, r.outcome)).collect();
        println!(
            "{}: {} kernels compiled in {compiled:.1?}, {} cases in {:.1?}, {} wrong",
            dialect.name,
            kernels.len(),
            reports.len(),
            began.elapsed() - compiled,
            wrong.len()
        );
        assert!(wrong.is_empty(), "{}:\n{}", dialect.name, wrong.join("\n"));
        assert_eq!(sim.kernels().len(), kernels.len(), "kernels that were not compiled with the others");
    }
}

/// Bodies of kernels are one text in all dialects: what each has of its own is in every case.
#[test]
#[ignore = "needs a compiler of C++"]
fn a_share_of_the_cases_holds() {
    holds(&Suite::sample(4), &[CDialect::CUDA]);
    holds(&Suite::sample(16), &[CDialect::HIP, CDialect::METAL]);
}

#[test]
#[ignore = "needs a compiler of C++, and half an hour"]
fn every_case_holds_in_all_its_ways() {
    holds(&Suite::new(), &[CDialect::CUDA]);
    holds(&Suite::quick(), &[CDialect::HIP, CDialect::METAL]);
}
