//! A plan of a file.

use super::graph::failure;
use super::step::StepSizeOptions;
use super::{ExplainRun, ExplainRunFn, ExplainedPlan, show};
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::{Layers, OptionOrigin};
use crate::plan_file::proved;
use crate::settings::EngineSettings;
use std::path::Path;
use yirage_explain::StoredSizes;

/// Explains the plan of a file.
///
/// # Errors
/// Whatever is wrong with the options, the file or the device.
pub(super) fn explain(file: &Path, measure: bool, layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    for option in ["model", "precision"] {
        if layers.raw_value(option).is_some_and(|given| given.origin == OptionOrigin::Flag) {
            let label = layers.label(option);
            return Err(CliFailure::Usage(format!("{label}: the plan of --plan says it; leave one of them out")));
        }
    }
    let settings = EngineSettings::resolve(layers)?;
    let (device, notes) = settings.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let plan = proved(file, &*device)?.plan;
    let sizes = StepSizeOptions::of_plan(layers, plan.bucket)?;
    console.note("what the compiler decided is not in a plan file: explain the graph for its reasons");
    let stored = StoredSizes::new(&*device, &plan)?;
    let planned = ExplainedPlan { plan, passes: Vec::new(), sizes: Box::new(stored) };
    let mut run = || {
        let (executor, variant) = (settings.options.executor, layers.text("variant"));
        let ran = yirage_explain::run(&*device, &planned.plan, &sizes.dims(), executor, variant);
        let ran = ran.map_err(failure)?;
        Ok(ExplainRun { chosen: Some(ran.chosen), variant: None, measured: ran.measured, profile: ran.profile })
    };
    show(&*device, &planned, &sizes, measure.then_some(&mut run as ExplainRunFn<'_>), layers, console)
}
