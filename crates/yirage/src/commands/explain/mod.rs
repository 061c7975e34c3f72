//! `yirage explain`: how a model, a graph or a plan of a file is compiled for a device, and how near its kernels come to the limits.

mod graph;
mod model;
mod plan;
mod step;

pub(crate) use graph::read as read_graph;
pub(crate) use step::StepSizeOptions;

use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::profiling;
use std::path::Path;
use yirage_compile::PassDecisions;
use yirage_engine::VariantOrigin;
use yirage_explain::{PlanTimings, ReportInput, limits, report, svg, text};
use yirage_hal::{Ceilings, Device, Profile, Roofline, SelectionReason, no_variants};
use yirage_ir::Format;
use yirage_ir::cost::StepSizes;
use yirage_plan::work;
use yirage_plan::{ExecutorKind, VerifiedPlan};

/// A plan, what was decided while it was made, and what its weights and states take.
struct ExplainedPlan {
    plan: VerifiedPlan,
    passes: Vec<PassDecisions>,
    sizes: Box<dyn work::ResidentSizes>,
}

/// What steps of a plan did when they ran.
struct ExplainRun {
    chosen: Option<(ExecutorKind, SelectionReason)>,
    /// How kernels went about products, and why, where a model was loaded.
    variant: Option<String>,
    measured: Option<PlanTimings>,
    profile: Profile,
}

/// Runs steps of a plan.
type ExplainRunFn<'a> = &'a mut dyn FnMut() -> Result<ExplainRun, CliFailure>;

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with options, files or the device.
pub(crate) fn run(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let measure = layers.switch("measure")?;
    if layers.raw_value("profile").is_some() && !measure {
        let (profile, label) = (layers.label("profile"), "--measure");
        return Err(CliFailure::Usage(format!("{profile}: nothing runs without {label}; give it too")));
    }
    if let Some(file) = layers.text("plan") {
        return plan::explain(Path::new(file), measure, layers, console);
    }
    let sizes = StepSizeOptions::resolve(layers)?;
    let file = layers.text("model").map(Path::new).filter(|path| graph::is_graph(path));
    match file {
        Some(file) => graph::explain(file, &sizes, measure, layers, console),
        None => model::explain(&sizes, measure, layers, console),
    }
}

/// Shows a plan, with the times of `run`'s steps where it is given one: what the device can do is read before and after.
fn show(
    device: &dyn Device,
    planned: &ExplainedPlan,
    sizes: &StepSizeOptions,
    run: Option<ExplainRunFn<'_>>,
    layers: &Layers,
    console: &Console,
) -> Result<(), CliFailure> {
    let ExplainedPlan { plan, passes, sizes: stored } = planned;
    let variant = unmeasured_variant(device, layers)?;
    let spans = sizes.spans();
    let limit_of = |format: Format| device.matmul_limit(plan.precision, format);
    let mut roofline = Roofline::new(device, limits(&plan.graph, &**stored, &spans, &limit_of))?;
    let before = roofline.read()?;
    let ran = run.map(|run| run()).transpose()?;
    let ceilings: Ceilings = if ran.is_some() { before.between(&roofline.read()?) } else { before };
    if let (Some(file), Some(ran)) = (layers.text("profile"), &ran) {
        profiling::write(Path::new(file), &ran.profile, console)?;
    }
    if ran.as_ref().is_some_and(|ran| ran.measured.is_none()) {
        console.note("no step of these sizes ran: nothing was measured");
    }
    let report = report(&ReportInput {
        plan,
        passes,
        step: StepSizes { dims: sizes.dims(), spans: &spans },
        sizes: &**stored,
        ceilings: &ceilings,
        limit_of: &limit_of,
        chosen: ran.as_ref().and_then(|ran| ran.chosen),
        variant: ran.as_ref().and_then(|ran| ran.variant.clone()).or(variant),
        measured: ran.as_ref().and_then(|ran| ran.measured.as_ref()),
    });
    if let Some(file) = layers.text("svg-file").map(Path::new) {
        std::fs::write(file, svg(&report)).map_err(|e| CliFailure::io(file, e))?;
        console.note(&format!("{}: the kernels beside their limits, and the memory map", file.display()));
    }
    if console.json { console.value(&report) } else { console.text(&text(&report, layers.switch("decisions")?)) }
}

/// How kernels go about products where no model was loaded that had them measured; none on a device with one way.
///
/// # Errors
/// The device's, for a way that is asked for and does not exist.
fn unmeasured_variant(device: &dyn Device, layers: &Layers) -> Result<Option<String>, CliFailure> {
    let (choices, origin) = match layers.text("variant") {
        Some(choices) => (choices, VariantOrigin::Forced),
        None => ("", VariantOrigin::Device),
    };
    match (device.kernel_variants(), origin) {
        (Some(variants), _) => Ok(Some(format!("{} ({origin})", variants.resolve(choices)?))),
        (None, VariantOrigin::Forced) => Err(no_variants(device.info().backend, choices).into()),
        (None, _) => Ok(None),
    }
}
