//! Conformance: every case of every op, compiled and run on a device, against the op's scalar reference.
//!
//! A backend joins with one line in a test: [`Suite::run`] on its device, with a reason for each case that is expected to fail. The suite knows
//! the ops' cases and the contract of devices; it knows no device and no kernel.
#![forbid(unsafe_code)]

mod bounds;
mod comparison;
mod diff;
pub mod limits;
mod measured;
mod operand_sources;
pub mod random;
mod setup;
mod tolerance;
pub mod vm;
mod wrap;

pub use comparison::CaseError;
pub use diff::OpDifference;
pub use measured::{MeasuredCase, MeasuredOutcome};
pub use operand_sources::{OperandSourceCase, operand_source_cases};
pub use setup::{GraphSetup, KvCacheSetup, Trouble};
pub use wrap::OperandSource;

use comparison::CaseComparison;
use std::sync::OnceLock;
use wrap::{WeightStrides, WrapOptions};
use yirage_hal::Device;
use yirage_ir::expr::Term;
use yirage_ir::op::{OpCase, Tolerance};
use yirage_ir::{DType, Dim, Dims, Format, Op, Tensor, Type, ValueSource};
use yirage_plan::Target;

/// Cases that a device refuses or fails, and why. They run all the same: one that passes is a failure of the list.
#[derive(Clone, Copy, Debug)]
pub struct ExpectedFailure {
    /// Beginning of the full names of the cases (`op: case`).
    pub prefix: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// What became of a case.
#[derive(Clone, PartialEq, Debug)]
pub enum CaseOutcome {
    /// Within its tolerance.
    Passed,
    /// It failed, as was expected for this reason.
    ExpectedFailure(&'static str),
    /// Of a general op, or of a layout of activations or a length of blocks that the target has not: it has no kernel that takes it so, and
    /// compiling said why.
    Refused(String),
    /// Outside its tolerance, not run for an error, or right although it was expected to fail.
    Failed(String),
}

/// A case's full name and outcome.
#[derive(Clone, PartialEq, Debug)]
pub struct CaseReport {
    /// `op: case`.
    pub name: String,
    /// What became of it.
    pub outcome: CaseOutcome,
}

/// Every case of every op, each with its plain weights dense, and as views with gaps and transposed; those of a general op
/// with each input from every place that it may come from. Made once, run on any number of devices; the reference evaluates
/// a case when it first runs.
pub struct Suite {
    cases: Vec<ConformanceCase>,
}

/// A case to run, with its inputs in one place or another.
struct ConformanceCase {
    name: String,
    case: OpCase,
    setup: Result<GraphSetup, String>,
    /// What the reference gives, once the case has run somewhere: many devices run but a share of the cases.
    want: OnceLock<Result<Vec<Tensor>, String>>,
}

impl Default for Suite {
    fn default() -> Suite {
        Suite::new()
    }
}

impl Suite {
    /// All cases.
    pub fn new() -> Suite {
        Suite::with_cases(Op::NAMES, usize::MAX)
    }

    /// The cases of these ops: of those that a new backend has.
    pub fn of(ops: &[&str]) -> Suite {
        Suite::with_cases(ops, usize::MAX)
    }

    /// All cases, each in the first of its ways alone.
    pub fn quick() -> Suite {
        Suite::quick_of(Op::NAMES)
    }

    /// The cases of these ops, each in the first of its ways alone.
    pub fn quick_of(ops: &[&str]) -> Suite {
        Suite::with_cases(ops, 1)
    }

    /// Every `step`th case of all, in the first of its ways: for a look that takes little time.
    pub fn sample(step: usize) -> Suite {
        Suite::from_cases(Op::all_cases().into_iter().step_by(step).collect(), 1)
    }

    /// The cases whose activations are floats of 32 bits, with activations of this type, each in the first of its ways: what is
    /// given is rounded to it, and so is what comes out ([`Op::activations`]).
    pub fn with_activations(format: Format) -> Suite {
        let cases = Op::all_cases().into_iter().filter_map(|case| rounded(case, DType::Stored(format)));
        Suite::from_cases(cases.collect(), 1)
    }

    fn with_cases(ops: &[&str], most: usize) -> Suite {
        let cases = Op::all_cases().into_iter().filter(|case| ops.contains(&case.op.name()));
        Suite::from_cases(cases.collect(), most)
    }

    /// These cases, each in as many of its ways at most.
    fn from_cases(cases: Vec<OpCase>, most: usize) -> Suite {
        let each =
            cases.iter().flat_map(|case| wrap::wrap_options(case).into_iter().take(most).map(move |how| (case, how)));
        Suite { cases: each.filter_map(|(case, how)| ConformanceCase::new(case, how)).collect() }
    }

    /// How many cases there are, with their ways.
    pub fn cases(&self) -> usize {
        self.cases.len()
    }

    /// Their full names (`op: case`).
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.cases.iter().map(|case| case.name.as_str())
    }

    /// Runs every case on `device`, of which those of `expected` fail. A prefix that no case has is a failure too.
    pub fn run(&self, device: &dyn Device, expected: &[ExpectedFailure]) -> Vec<CaseReport> {
        self.reports(device, expected).collect()
    }

    /// The same by one of the device's ways, every case.
    pub fn run_with_variant(&self, device: &dyn Device, variant: &str) -> Vec<CaseReport> {
        self.cases_of(device).map(|case| case.run(device, &[], Some(variant))).collect()
    }

    /// How many cases are not the device's, and do not run: those of caches whose blocks have a length that its target does not
    /// name.
    pub fn left_out(&self, device: &dyn Device) -> usize {
        self.cases.len() - self.cases_of(device).count()
    }

    /// The cases that are the device's: all but those of caches whose blocks have a length that its target does not name.
    fn cases_of<'a>(&'a self, device: &dyn Device) -> impl Iterator<Item = &'a ConformanceCase> + use<'a> {
        let target = device.target();
        self.cases.iter().filter(move |case| case.has_blocks_of(&target))
    }

    /// The same one by one: each case runs when its report is asked for.
    pub fn reports<'a>(
        &'a self,
        device: &'a dyn Device,
        expected: &'a [ExpectedFailure],
    ) -> impl Iterator<Item = CaseReport> + 'a {
        let nowhere = |listed: &&ExpectedFailure| !self.cases.iter().any(|case| case.name.starts_with(listed.prefix));
        let stale = expected.iter().filter(nowhere).map(|listed| CaseReport {
            name: listed.prefix.into(),
            outcome: CaseOutcome::Failed("it is expected to fail, and no case begins so: take it off the list".into()),
        });
        stale.chain(self.cases_of(device).map(move |case| case.run(device, expected, None)))
    }

    /// Every case with how far it is from the reference, one by one: each runs when it is asked for.
    pub fn measured<'a>(&'a self, device: &'a dyn Device) -> impl Iterator<Item = MeasuredCase> + 'a {
        self.cases_of(device).map(|case| case.measured(device))
    }
}

impl ConformanceCase {
    /// None for a variant that the case does not have.
    fn new(case: &OpCase, how: WrapOptions) -> Option<ConformanceCase> {
        let name = format!("{}: {}{how}", case.op.name(), case.name);
        let setup = wrap::wrap(case, how).transpose()?.and_then(|setup| narrow(case).map(|()| setup));
        if how.weight_strides != WeightStrides::Dense && setup.as_ref().is_ok_and(|s| !has_views(s)) {
            return None;
        }
        Some(ConformanceCase { name, case: case.clone(), setup, want: OnceLock::new() })
    }

    fn run(&self, device: &dyn Device, expected: &[ExpectedFailure], variant: Option<&str>) -> CaseReport {
        let listed = expected.iter().find(|listed| self.name.starts_with(listed.prefix));
        let outcome = match (self.check(device, variant), listed) {
            (Ok(()), None) => CaseOutcome::Passed,
            (Ok(()), Some(listed)) => CaseOutcome::Failed(format!(
                "it passes, and is expected to fail ({}): take it off the list",
                listed.reason
            )),
            (Err(_), Some(listed)) => CaseOutcome::ExpectedFailure(listed.reason),
            (Err(Trouble::Refused(why)), None) if self.is_refusable(device) => CaseOutcome::Refused(why),
            (Err(Trouble::Refused(why) | Trouble::Failed(why)), None) => CaseOutcome::Failed(why),
        };
        CaseReport { name: self.name.clone(), outcome }
    }

    /// Whether the target has caches with blocks as long as those of the case, in some format.
    fn has_blocks_of(&self, target: &Target) -> bool {
        let is_length = |block: &Type| match block.shape[..] {
            [Dim::Const(length), _, _] => target.kv_cache_layouts.iter().any(|facts| facts.positions.contains(&length)),
            _ => true,
        };
        self.setup.as_ref().map_or(true, |setup| {
            let mut caches = setup.graph.inputs_of(ValueSource::KvCache);
            target.kv_cache_layouts.is_empty() || caches.all(|id| is_length(setup.graph.ty(id)))
        })
    }

    /// Whether it is about a layout of activations, or about blocks of a cache, that the device has not.
    fn is_beyond(&self, device: &dyn Device) -> bool {
        let target = device.target();
        let unknown = |value: &yirage_ir::Value| {
            value.ty.activation_format.is_some_and(|layout| target.activation_format(layout).is_none())
        };
        let no_blocks = |setup: &GraphSetup| {
            let mut caches = setup.graph.inputs_of(ValueSource::KvCache);
            caches.any(|id| target.kv_cache_layout_of(setup.graph.ty(id)).is_none())
        };
        self.setup.as_ref().is_ok_and(|setup| setup.graph.values.iter().any(unknown) || no_blocks(setup))
    }

    fn check(&self, device: &dyn Device, variant: Option<&str>) -> Result<(), Trouble> {
        self.compared(device, variant)?.wrong.map_or(Ok(()), |why| Err(Trouble::Failed(why)))
    }

    fn compared(&self, device: &dyn Device, variant: Option<&str>) -> Result<CaseComparison, Trouble> {
        let setup = self.setup.as_ref().map_err(Clone::clone)?;
        let want = self.want.get_or_init(|| setup.reference()).as_ref().map_err(Clone::clone)?;
        let got = setup.run_with_variant(device, variant)?;
        Ok(CaseComparison::of(&self.case, &got, want)?)
    }

    /// Whether a device may refuse it.
    fn is_refusable(&self, device: &dyn Device) -> bool {
        wrap::is_general(&self.case) || self.is_beyond(device)
    }
}

/// A case with its activations rounded to another type; none of an op without such activations.
fn rounded(mut case: OpCase, dtype: DType) -> Option<OpCase> {
    let at = case.op.activations();
    let activations = || at.iter().filter(|&&at| case.ins.get(at).is_some_and(|tensor| tensor.dtype == DType::F32));
    let inputs: Vec<usize> = activations().copied().collect();
    for &at in &inputs {
        let narrow = Tensor { dtype, ..case.ins[at].clone() };
        case.ins[at] = Tensor::from_memory(&narrow.ty(), &Dims::default(), &narrow.memory());
    }
    case.name = format!("{} with {} activations", case.name, dtype.name());
    let types: Vec<Type> = case.ins.iter().map(Tensor::ty).collect();
    (!inputs.is_empty() && case.op.infer(&types).is_ok()).then_some(case)
}

/// An op may not say of itself that it need not be close.
fn narrow(case: &OpCase) -> Result<(), String> {
    let limit = limits::of(&case.op);
    if let Op::Map(map) = &case.op {
        let functions =
            map.expr.terms().iter().filter_map(|t| if let Term::Call(func, _) = t { Some(*func) } else { None });
        let mut close = functions.map(|f| (limits::of_function(f), f.tolerance()));
        let wide = |(limit, (abs, rel)): &(limits::ToleranceLimit, (f64, f64))| {
            !limit.allows(Tolerance::Close { abs: *abs as f32, rel: *rel as f32 })
        };
        if let Some((limit, found)) = close.find(wide) {
            return Err(format!("a function's tolerance {found:?} is wider than that of {}", limit.row));
        }
    }
    if limit.allows(case.tolerance) {
        return Ok(());
    }
    Err(format!(
        "its tolerance {:?} is wider than that of {}, {} and {}",
        case.tolerance, limit.row, limit.abs, limit.rel
    ))
}

fn has_views(setup: &GraphSetup) -> bool {
    setup.graph.inputs_of(ValueSource::Weight).any(|id| setup.graph.ty(id).strides.is_some())
}
