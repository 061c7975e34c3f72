//! `yirage backend set` and `reset`: the backend that later starts take.

use crate::console::Console;
use crate::failure::Failure;
use crate::options::{Kept, Layers, Origin};
use serde_json::json;
use yirage_registry::{AUTO, Registry, Surroundings};

/// Keeps the backend called `name`. Nothing changes where it has no device here.
///
/// # Errors
/// [`Failure::Backend`] with the reason; [`Failure`] where the file cannot be written.
pub(crate) fn set(layers: &Layers, console: &Console, name: &str) -> Result<(), Failure> {
    let backend = Registry::new(Surroundings::of_this_process()).select(name)?;
    let name = if name.eq_ignore_ascii_case(AUTO) { AUTO } else { backend.name() };
    let mut kept = Kept::open(layers)?;
    kept.set("backend", &name.into())?;
    kept.write()?;
    if let Some(Origin::Variable(variable)) = layers.given("backend").map(|given| &given.origin) {
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
/// [`Failure`] where the file cannot be written.
pub(crate) fn reset(layers: &Layers, console: &Console) -> Result<(), Failure> {
    let mut kept = Kept::open(layers)?;
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
