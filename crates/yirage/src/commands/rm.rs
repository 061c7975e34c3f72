//! `yirage rm`: removes a model from the cache.

use crate::console::{Console, bytes};
use crate::download::hub;
use crate::failure::CliFailure;
use crate::options::Layers;
use serde_json::json;
use yirage_hub::ModelRef;

/// Runs the command.
///
/// # Errors
/// [`CliFailure::Hub`] when it is not in the cache.
pub(crate) fn run(layers: &Layers, console: &Console, name: &str) -> Result<(), CliFailure> {
    let removed = hub(layers).remove(&ModelRef::parse(name)?)?;
    if console.json {
        return console.value(&json!({"model": name, "files": removed.files, "bytes": removed.bytes}));
    }
    console.line(&format!("{name}: {} files removed, {} free again", removed.files, bytes(removed.bytes)))
}
