//! A backend of its own, begun from the pattern: a driver, a library of three kernels, and the suite on them.
//!
//! `docs/hardware/adding-a-backend.md` walks through it.
#![allow(clippy::print_stdout)] // says what it ran

mod driver;
mod kernels;
mod library;
mod skeleton;

use driver::DemoDriver;
use library::{DemoLibrary, OPS};
use std::sync::Arc;
use yirage_conformance::{CaseOutcome, ExpectedFailure, Suite};
use yirage_hal::driver::DriverDevice;
use yirage_hal::{Backend, Device, DeviceInfo, HalError, OpenOptions, Unavailable};

/// The backend.
struct Demo;

impl Backend for Demo {
    fn name(&self) -> &'static str {
        "demo"
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        Ok(vec![DeviceInfo::new("demo", 0, "a demonstration", "host")])
    }

    fn open(&self, ordinal: u32, _: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        if ordinal != 0 {
            return Err(HalError::Option { option: "device", why: format!("there is one, 0, and no {ordinal}") });
        }
        let info = DeviceInfo::new("demo", 0, "a demonstration", "host");
        Ok((Arc::new(DriverDevice::new(info, DemoDriver::default(), DemoLibrary)), Vec::new()))
    }
}

/// What the three kernels do not do, and why.
const EXPECTED: &[ExpectedFailure] = &[
    ExpectedFailure { prefix: "embed: f16", reason: NO_FORMATS },
    ExpectedFailure { prefix: "embed: bf16", reason: NO_FORMATS },
    ExpectedFailure { prefix: "embed: q", reason: NO_FORMATS },
    ExpectedFailure { prefix: "embed: iq", reason: NO_FORMATS },
    ExpectedFailure { prefix: "embed: mxfp4", reason: NO_FORMATS },
];

const NO_FORMATS: &str = "its tables are of f32";

#[test]
fn the_first_three_ops_pass_the_suite() {
    let (device, _) = Demo.open(0, &OpenOptions::default()).unwrap();
    let reports = Suite::of(&OPS).run(&*device, EXPECTED);
    let (mut passed, mut wrong) = (0, Vec::new());
    for report in &reports {
        match &report.outcome {
            CaseOutcome::Passed => passed += 1,
            CaseOutcome::ExpectedFailure(_) => {}
            other => wrong.push(format!("{}: {other:?}", report.name)),
        }
    }
    println!("{passed} of {} cases", reports.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(passed >= 20, "{passed}");
}

#[test]
fn another_op_is_refused_by_name() {
    let (device, _) = Demo.open(0, &OpenOptions::default()).unwrap();
    let reports = Suite::of(&["hadamard"]).run(&*device, &[]);
    assert!(!reports.is_empty());
    for report in reports {
        let CaseOutcome::Failed(why) = report.outcome else { panic!("{}: {:?}", report.name, report.outcome) };
        assert!(why.contains("no kernel for `hadamard`"), "{why}");
    }
}

#[test]
fn a_case_that_passes_may_not_be_expected_to_fail() {
    let (device, _) = Demo.open(0, &OpenOptions::default()).unwrap();
    let wrong = [("softmax", "it passes"), ("softmaxes", "no case begins so")].map(|(prefix, why)| {
        let reports = Suite::of(&["softmax"]).run(&*device, &[ExpectedFailure { prefix, reason: "a mistake" }]);
        let failed =
            |r: &yirage_conformance::CaseReport| matches!(&r.outcome, CaseOutcome::Failed(w) if w.contains(why));
        (reports.iter().filter(|r| failed(r)).count(), reports.len())
    });
    assert_eq!(wrong[0].0, wrong[0].1);
    assert_eq!(wrong[1].0, 1);
}
