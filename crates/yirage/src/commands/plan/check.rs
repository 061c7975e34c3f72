//! `yirage plan check`: whether a device may run the plan of a file.

use super::summary::PlanFileSummary;
use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::Layers;
use crate::plan_file;
use crate::settings::DeviceSettings;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// Whatever is wrong with the options; [`CliFailure::Plan`] for a plan that is damaged, foreign, stale or not sound.
pub(crate) fn run(layers: &Layers, console: &Console, path: &str) -> Result<(), CliFailure> {
    let (device, notes) = DeviceSettings::resolve(layers)?.open(layers)?;
    notes.iter().for_each(|note| console.note(note));
    let file = plan_file::proved(Path::new(path), &*device)?;
    PlanFileSummary::new(&file.key, &file.interface, &file.plan, true).print(console)
}
