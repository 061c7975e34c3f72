//! Conformance: every case of every op, compiled and run on a device, against the op's scalar reference.
//!
//! A backend joins with one line in a test: [`run`] on its device, with a reason for each exclusion. The suite knows the
//! ops' cases and the contract of devices; it knows no device and no kernel.
#![forbid(unsafe_code)]

mod bounds;
mod setup;
mod wrap;

pub use setup::{Setup, State};

use yirage_hal::Device;
use yirage_ir::op::Case;
use yirage_ir::tensor::Data;
use yirage_ir::{Op, Tensor};

/// A case that does not run on a device, and why.
#[derive(Clone, Copy, Debug)]
pub struct Exclusion {
    /// Beginning of the case's full name (`op: case`).
    pub prefix: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// What became of a case.
#[derive(Clone, PartialEq, Debug)]
pub enum Outcome {
    /// Within its tolerance.
    Passed,
    /// Not run, for this reason.
    Excluded(&'static str),
    /// Outside its tolerance, or not run for an error.
    Failed(String),
}

/// A case's full name and outcome.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// `op: case`.
    pub name: String,
    /// What became of it.
    pub outcome: Outcome,
}

/// Runs every case of every op on `device`.
pub fn run(device: &dyn Device, exclusions: &[Exclusion]) -> Vec<Report> {
    Op::all_cases().iter().map(|case| report(device, case, exclusions)).collect()
}

fn report(device: &dyn Device, case: &Case, exclusions: &[Exclusion]) -> Report {
    let name = format!("{}: {}", case.op.name(), case.name);
    let outcome = match exclusions.iter().find(|e| name.starts_with(e.prefix)) {
        Some(e) => Outcome::Excluded(e.reason),
        None => match check(device, case) {
            Ok(()) => Outcome::Passed,
            Err(why) => Outcome::Failed(why),
        },
    };
    Report { name, outcome }
}

fn check(device: &dyn Device, case: &Case) -> Result<(), String> {
    let setup = wrap::wrap(case)?;
    let want = setup.reference()?;
    let got = setup.run(device)?;
    if got.len() != want.len() {
        return Err(format!("{} outputs, {} wanted", got.len(), want.len()));
    }
    for (index, (got, want)) in got.iter().zip(&want).enumerate() {
        compare(case, index, got, want).map_err(|why| format!("output {index}: {why}"))?;
    }
    Ok(())
}

/// Whether an output is as close as its case demands; integers are equal.
fn compare(case: &Case, index: usize, got: &Data, want: &Tensor) -> Result<(), String> {
    let (got, want) = match (got, &want.data) {
        (Data::F32(got), Data::F32(want)) => (got, want),
        (Data::I32(got), Data::I32(want)) if got == want => return Ok(()),
        (got, want) => return Err(format!("{got:?}, the reference gives {want:?}")),
    };
    if got.len() != want.len() {
        return Err(format!("{} values, {} wanted", got.len(), want.len()));
    }
    let bounds = bounds::of(case, index, want);
    for (i, ((g, w), bound)) in got.iter().zip(want).zip(bounds).enumerate() {
        let same = g.to_bits() == w.to_bits() || (g.is_nan() && w.is_nan());
        let close = (f64::from(*g) - f64::from(*w)).abs() <= bound;
        if !same && !close {
            return Err(format!("value {i} is {g}, the reference gives {w}, within {bound:e} wanted"));
        }
    }
    Ok(())
}
