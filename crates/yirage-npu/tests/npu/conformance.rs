//! The conformance suite: what operators and the host give, by the whole way from a plan to a call.

use crate::support::{device, machine};
use yirage_conformance::{MeasuredCase, MeasuredOutcome, Suite};
use yirage_npu::{NpuVendor, OperationCounts};

for_every_maker! {
    the_minimal_ops_hold,
    the_host_evaluates_only_what_is_declared,
    every_case_holds_in_all_its_ways,
}

/// The cases that are about a layout of activations, of which this backend has none.
fn may_be_refused(name: &str) -> bool {
    name.contains(" q8a") || name.starts_with("quantize: ")
}

/// The ops that every backend has of the nine that are asked of it: add and swiglu are among `map`, rearrange is `view` and
/// `concat`, gemm is `linear` and `matmul`, causal softmax is `softmax` and `attention`, random sample is `sample`.
const MINIMAL: [&str; 10] =
    ["map", "softmax", "attention", "embed", "linear", "matmul", "sample", "view", "rms_norm", "rope"];

/// Runs the cases with tasks held up by a seed, and gives who computed them.
fn holds(vendor: NpuVendor, suite: &Suite, settings: &[(&str, &str)]) -> OperationCounts {
    let (machine, backend) = machine(vendor, settings);
    let device = device(&backend);
    let (mut all, mut refused, mut wrong) = (0, 0, Vec::new());
    for MeasuredCase { name, outcome, .. } in suite.measured(&*device) {
        all += 1;
        match outcome {
            MeasuredOutcome::Passed => {}
            MeasuredOutcome::Refused(_) if may_be_refused(&name) => refused += 1,
            other => wrong.push(format!("{name}: {other:?}")),
        }
    }
    let counts = backend.counts();
    println!("{all} cases, {refused} refused, {} wrong, {counts:?}", wrong.len());
    assert!(wrong.is_empty(), "{} of {all} cases:\n{}", wrong.len(), wrong.join("\n"));
    drop(device);
    assert!(machine.stats().is_clean(), "{:?}", machine.stats());
    assert!(machine.stats().copies > 0);
    counts
}

fn the_minimal_ops_hold(vendor: NpuVendor) {
    let counts = holds(vendor, &Suite::quick_of(&MINIMAL), &[("delay_us", "40"), ("seed", "7")]);
    assert!(counts.by_operators > 100 && counts.on_host > 0, "{counts:?}");
}

/// Of an op that has operators nothing is evaluated on the host, whatever the sizes.
fn the_host_evaluates_only_what_is_declared(vendor: NpuVendor) {
    for op in ["softmax", "matmul", "rms_norm", "rope"] {
        assert_eq!(holds(vendor, &Suite::quick_of(&[op]), &[]).on_host, 0, "{op}");
    }
    let counts = holds(vendor, &Suite::quick_of(&["sample"]), &[]);
    assert!(counts.on_host > 0, "{counts:?}");
}

fn every_case_holds_in_all_its_ways(vendor: NpuVendor) {
    holds(vendor, &Suite::new(), &[]);
}
