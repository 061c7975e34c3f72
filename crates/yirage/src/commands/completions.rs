//! `yirage completions`: the completion script for a shell.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::{root, shell};
use serde_json::json;

/// Runs the command.
///
/// # Errors
/// [`CliFailure::Usage`] for an unknown shell.
pub(crate) fn run(console: &Console, name: &str) -> Result<(), CliFailure> {
    let mut script = Vec::new();
    clap_complete::generate(shell(name)?, &mut root(), "yirage", &mut script);
    let script = String::from_utf8_lossy(&script);
    if console.json { console.value(&json!({"shell": name, "script": script})) } else { console.text(&script) }
}
