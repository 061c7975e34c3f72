//! `yirage backend set` and `reset`: the backend that later starts take.

use crate::console::Console;
use crate::failure::CliFailure;
use crate::options::{ConfigEditor, Layers, OptionOrigin};
use serde_json::json;
use yirage_registry::{AUTO, ProbeEnvironment, Registry};

/// Keeps the backend called `name`. Nothing changes where it has no device here.
///
/// # Errors
/// [`CliFailure::Backend`] with the reason; [`CliFailure`] where the file cannot be written.
pub(crate) fn set(layers: &Layers, console: &Console, name: &str) -> Result<(), CliFailure> {
    let backend = Registry::new(ProbeEnvironment::of_this_process()).select(name)?;
    let name = if name.eq_ignore_ascii_case(AUTO) { AUTO } else { backend.name() };
    let mut kept = ConfigEditor::open(layers)?;
    kept.set("backend", &name.into())?;
    kept.write()?;
    if let Some(OptionOrigin::Variable(variable)) = layers.raw_value("backend").map(|given| &given.origin) {
        console.note(&format!("{variable} is set, which beats what is kept"));
    }
    if console.json {
        return console.value(&json!({"backend": name, "path": kept.path()}));
    }
    console.line(&format!("{name} is kept as the backend in {}", kept.path().display()))
}

/// Forgets the backend that was kept.
///
/// # Errors
/// [`CliFailure`] where the file cannot be written.
pub(crate) fn reset(layers: &Layers, console: &Console) -> Result<(), CliFailure> {
    let mut kept = ConfigEditor::open(layers)?;
    let removed = kept.remove("backend");
    if removed {
        kept.write()?;
    }
    let path = kept.path();
    if console.json {
        return console.value(&json!({"removed": removed, "path": path}));
    }
    console.line(&match removed {
        true => format!("no backend is kept any more in {}", path.display()),
        false => format!("no backend was kept in {}", path.display()),
    })
}
