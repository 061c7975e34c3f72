//! `yirage backend config`: the settings that are kept, to a file and back.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::{self, ConfigEditor, Layers, SavedSettings};
use serde_json::json;
use std::path::Path;
use yirage_registry::{ProbeEnvironment, Registry};

/// Writes them to the file called `file`.
///
/// # Errors
/// [`CliFailure`] where either file cannot be read or written.
pub(crate) fn save(layers: &Layers, console: &Console, file: &str) -> Result<(), CliFailure> {
    let settings = ConfigEditor::open(layers)?.settings()?;
    options::save(&settings, Path::new(file))?;
    if console.json {
        return console.value(&json!({"file": file, "settings": settings}));
    }
    console.line(&format!("{} settings written to {file}", settings.len()))
}

/// Keeps those of the file called `file`. Nothing changes where one of them cannot be kept.
///
/// # Errors
/// [`CliFailure`] where either file cannot be read or written, for values that no option takes, and for a backend that has
/// no device here.
pub(crate) fn load(layers: &Layers, console: &Console, file: &str) -> Result<(), CliFailure> {
    let saved = SavedSettings::read(Path::new(file))?;
    if let Some(name) = saved.layers.raw_value("backend").and_then(|given| given.values.first()) {
        Registry::new(ProbeEnvironment::of_this_process()).select(name)?;
    }
    let mut kept = ConfigEditor::open(layers)?;
    for (key, value) in &saved.settings {
        kept.set(key, value)?;
    }
    kept.write()?;
    for key in &saved.unknown {
        console.note(&format!("{file}: there is no option {key:?}; left out"));
    }
    let (settings, path) = (&saved.settings, kept.path());
    if console.json {
        return console.value(&json!({"path": path, "settings": settings, "unknown": saved.unknown}));
    }
    console.line(&format!("{} settings of {file} are kept in {}", settings.len(), path.display()))
}

/// Shows them.
///
/// # Errors
/// [`CliFailure`] where the file cannot be read.
pub(crate) fn show(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let kept = ConfigEditor::open(layers)?;
    let (settings, path) = (kept.settings()?, kept.path());
    if console.json {
        return console.value(&json!({"path": path, "settings": settings}));
    }
    console.line(&format!("kept in {}:", path.display()))?;
    for (key, value) in &settings {
        console.line(&format!("  {key} = {value}"))?;
    }
    if settings.is_empty() {
        console.line("  nothing")?;
    }
    Ok(())
}
