//! `yirage plan save`: a graph compiled for a device, and its plan written to a file.

use super::summary::PlanFileSummary;
use crate::commands::explain::{StepSizeOptions, read_graph};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::plan_file;
use crate::settings::{DeviceSettings, precision};
use std::path::Path;
use yirage_plancache::{CallOptions, Interface, PlanFile, PlanKey, planned};

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options or the graph; [`CliFailure::Call`] where the device has no plan for it; [`CliFailure::Io`].
pub(crate) fn run(layers: &Layers, console: &Console, path: &str) -> Result<(), CliFailure> {
    let missing = || CliFailure::Usage("no file to write is named: --plan FILE".into());
    let out = Path::new(layers.text("plan").ok_or_else(missing)?);
    let graph = read_graph(Path::new(path))?;
    let sizes = StepSizeOptions::resolve(layers)?;
    let options = CallOptions {
        // Rows are as many as there may be: which of a step's are wanted is for its caller to say.
        dims: yirage_ir::Dims { rows: sizes.dims().tokens, ..sizes.dims() },
        precision: precision(layers)?,
        fuse: layers.switch("fuse")?,
    };
    let (device, notes) = DeviceSettings::resolve(layers)?.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let target = device.target();
    let plan = planned(&graph, &target, &options)?;
    let key = PlanKey::of(&graph, plan.bucket, &target, &options.compiling());
    let saved = PlanFile { key, interface: Interface::of(&graph), plan: plan.into_plan() };
    let text = saved.print().map_err(|source| plan_file::failure(out, source))?;
    std::fs::write(out, &text).map_err(|source| CliFailure::io(out, source))?;
    console.note(&format!("{}: {} bytes", out.display(), text.len()));
    PlanFileSummary::new(&saved.key, &saved.interface, &saved.plan, true).print(console)
}
