//! The conformance suite: what the CUDA text of every op's kernels gives, by the whole way from a plan to a launch.

use crate::support::device;
use std::sync::Arc;
use yirage_conformance::{MeasuredCase, MeasuredOutcome, Suite};
use yirage_hal::Device;

/// The cases that are about a layout of activations that such devices have not, or about more values than a kernel is
/// bound to.
fn may_be_refused(name: &str) -> bool {
    name.contains(" q8a") || name.starts_with("quantize: ") || name.starts_with("concat: as many as can be")
}

pub(crate) fn holds(device: &Arc<dyn Device>, suite: &Suite) {
    let (mut all, mut refused, mut wrong) = (0, 0, Vec::new());
    for MeasuredCase { name, outcome, .. } in suite.measured(&**device) {
        all += 1;
        match outcome {
            MeasuredOutcome::Passed => {}
            MeasuredOutcome::Refused(_) if may_be_refused(&name) => refused += 1,
            other => wrong.push(format!("{name}: {other:?}")),
        }
    }
    println!("{}: {all} cases, {refused} refused, {} wrong", device.info().backend, wrong.len());
    assert!(wrong.is_empty(), "{} of {all} cases:\n{}", wrong.len(), wrong.join("\n"));
}

/// Kernels themselves are tried by the emulator's own tests, many at once: here each is compiled as a device is opened with it.
#[test]
#[ignore = "needs a compiler of C++"]
fn a_share_of_the_cases_holds() {
    holds(&device(), &Suite::sample(48));
}

/// The ops that every backend has of the nine that are asked of it, but for those of single elements, copies and sampling, which are
/// among the others.
pub(crate) const MINIMAL: [&str; 5] = ["embed", "matmul", "rms_norm", "rope", "softmax"];

#[test]
#[ignore = "needs a compiler of C++"]
fn the_minimal_ops_hold() {
    holds(&device(), &Suite::quick_of(&MINIMAL));
}

#[test]
#[ignore = "needs a compiler of C++, and half an hour"]
fn every_case_holds_in_all_its_ways() {
    holds(&device(), &Suite::new());
}
