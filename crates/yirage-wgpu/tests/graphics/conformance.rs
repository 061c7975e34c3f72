//! The conformance suite on the first Vulkan device of this machine.
use yirage_conformance::{MeasuredCase, MeasuredOutcome, Suite};
use yirage_hal::{Backend, OpenOptions};
use yirage_probe::ProbeEnvironment;
use yirage_wgpu::{GraphicsApi, WgpuBackend};

/// The cases that are about a layout of activations that such devices have not, or about more values than a kernel is
/// bound to.
fn may_be_refused(name: &str) -> bool {
    name.contains(" q8a") || name.starts_with("quantize: ") || name.starts_with("concat: as many as can be")
}

fn holds(suite: &Suite) {
    let backend = WgpuBackend::new(GraphicsApi::Vulkan, ProbeEnvironment::of_this_process());
    let (device, notes) = backend.open(0, &OpenOptions::default()).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    let (mut all, mut refused, mut rounded, mut wrong) = (0, 0, 0, Vec::new());
    for MeasuredCase { name, outcome, .. } in suite.measured(&*device) {
        all += 1;
        match outcome {
            MeasuredOutcome::Passed => {}
            // WGSL lets a compiler fuse a product and a sum, and has no word against it.
            MeasuredOutcome::Rounded(_) => rounded += 1,
            MeasuredOutcome::Refused(_) if may_be_refused(&name) => refused += 1,
            other => wrong.push(format!("{name}: {other:?}")),
        }
    }
    let wrong_ones = wrong.len();
    println!("{all} cases, {refused} refused, {rounded} with log-probabilities rounded otherwise, {wrong_ones} wrong");
    assert!(wrong.is_empty(), "{wrong_ones} of {all} cases:\n{}", wrong.join("\n"));
}

#[test]
#[ignore = "needs a Vulkan device"]
fn a_tenth_of_the_cases_holds_in_the_first_of_their_ways() {
    holds(&Suite::sample(10));
}

#[test]
#[ignore = "needs a Vulkan device, and ten minutes"]
fn every_case_holds_in_all_its_ways() {
    match std::env::var("OPS") {
        Ok(ops) => holds(&Suite::of(&ops.split(',').collect::<Vec<_>>())),
        Err(_) => holds(&Suite::new()),
    }
}
