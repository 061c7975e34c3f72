//! `yirage plan show`: what a plan file holds. It needs no device, and proves nothing.

use super::summary::PlanFileSummary;
use crate::console::Console;
use crate::failure::CliFailure;
use crate::plan_file;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// [`CliFailure::File`], [`CliFailure::Plan`].
pub(crate) fn run(console: &Console, path: &str) -> Result<(), CliFailure> {
    let file = plan_file::read(Path::new(path))?;
    PlanFileSummary::new(&file.key, &file.interface, &file.plan, false).print(console)
}
