//! `yirage version`: which program this is.

use crate::console::Console;
use crate::failure::CliFailure;
use serde_json::json;
use yirage_registry::{ProbeEnvironment, Registry};

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Runs the command. No device is asked.
///
/// # Errors
/// [`CliFailure::Closed`].
pub(crate) fn run(console: &Console) -> Result<(), CliFailure> {
    let backends = Registry::new(ProbeEnvironment::of_this_process()).backends();
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    if console.json {
        return console.value(&json!({"version": VERSION, "system": system, "machine": machine, "backends": backends}));
    }
    console.line(&format!("yirage {VERSION} ({machine}, {system}); computes on: {}", backends.join(", ")))
}
