//! `yirage plan show`: what a plan file holds. It needs no device, and proves nothing.

use super::summary::Summary;
use crate::console::Console;
use crate::failure::Failure;
use crate::plan_file;
use std::path::Path;

/// Runs the command.
///
/// # Errors
/// [`Failure::File`], [`Failure::Plan`].
pub(crate) fn run(console: &Console, path: &str) -> Result<(), Failure> {
    let file = plan_file::read(Path::new(path))?;
    Summary::new(&file.key, &file.interface, &file.plan, false).print(console)
}
