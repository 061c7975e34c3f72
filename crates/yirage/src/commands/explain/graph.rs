//! A graph from a file, with inputs that are made up where it is run.

use super::step::StepSizeOptions;
use super::{ExplainRun, ExplainRunFn, ExplainedPlan, show};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::settings::EngineSettings;
use std::path::Path;
use yirage_compile::{compile_explained, plan_weights};
use yirage_engine::EngineError;
use yirage_explain::{ExplainError, StoredSizes};
use yirage_hal::HalError;
use yirage_ir::{Graph, text};
use yirage_mmap::read_text;

/// Most bytes of a graph's text.
const MOST: u64 = 64 << 20;

/// Whether a name is that of a graph's file: told by its ending, since no model has one.
pub(super) fn is_graph(path: &Path) -> bool {
    path.extension().is_some_and(|e| e == "graph" || e == "json") && path.is_file()
}

/// Explains a graph.
///
/// # Errors
/// Whatever is wrong with the file, the graph or the device.
pub(super) fn explain(
    file: &Path,
    sizes: &StepSizeOptions,
    measure: bool,
    layers: &Layers,
    console: &Console,
) -> Result<(), CliFailure> {
    let graph = read(file)?;
    let settings = EngineSettings::resolve(layers)?;
    let (device, notes) = settings.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let (target, options) = (device.target(), settings.options.compiling());
    let weights = plan_weights(&graph, &target).map_err(EngineError::from)?;
    let mut passes = Vec::new();
    let plan = compile_explained(&graph, sizes.dims(), &target, &weights, &options, &mut passes);
    let plan = plan.map_err(EngineError::from)?;
    let stored = StoredSizes::new(&*device, &plan)?;
    let planned = ExplainedPlan { plan, passes, sizes: Box::new(stored) };
    let mut run = || {
        let (executor, variant) = (settings.options.executor, layers.text("variant"));
        let ran = yirage_explain::run(&*device, &planned.plan, &sizes.dims(), executor, variant);
        let ran = ran.map_err(failure)?;
        Ok(ExplainRun { chosen: Some(ran.chosen), variant: None, measured: ran.measured, profile: ran.profile })
    };
    show(&*device, &planned, sizes, measure.then_some(&mut run as ExplainRunFn<'_>), layers, console)
}

/// The graph of a file, in JSON or in text form.
///
/// # Errors
/// Whatever is wrong with the file.
pub(crate) fn read(file: &Path) -> Result<Graph, CliFailure> {
    if file.extension().is_some_and(|e| e == "json") {
        return crate::commands::graph::read(file);
    }
    let wrong = |e: &dyn std::fmt::Display| CliFailure::Other(format!("{}: {e}", file.display()));
    let graph = text::parse(&read_text(file, MOST)?).map_err(|e| wrong(&e))?;
    yirage_ir::verify(&graph).map_err(|e| wrong(&e))?;
    Ok(graph)
}

pub(super) fn failure(error: ExplainError) -> CliFailure {
    match error {
        ExplainError::Device(error) => error.into(),
        ExplainError::NotMadeUp { what, why } => HalError::Unsupported { what, why }.into(),
    }
}
