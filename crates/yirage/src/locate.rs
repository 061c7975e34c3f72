//! From what `--model` says to files.

use crate::console::Console;
use crate::download::{Shown, fetching_hub};
use crate::failure::Failure;
use crate::options::Layers;
use std::path::{Path, PathBuf};
use yirage_hub::{ModelRef, Origin};

/// A model that is on this machine now.
pub(crate) struct Located {
    /// How the user called it, or the default's name.
    pub(crate) name: String,
    /// File or folder.
    pub(crate) path: PathBuf,
}

/// Finds the model that the options name ([`named`]). Without a name it is the default model.
///
/// # Errors
/// [`Failure::Hub`] when it is nowhere, saying where it was looked for and what to do.
pub(crate) fn locate(layers: &Layers, console: &Console) -> Result<Located, Failure> {
    let Some(name) = layers.text("model") else {
        let hub = fetching_hub(layers, console);
        let found = hub.resolve_default(&Shown::on(console, &hub))?;
        let from = match found.origin {
            Origin::Local | Origin::Cache => found.path.display().to_string(),
            Origin::Hub | Origin::Packages => format!("fetched to {}", found.path.display()),
        };
        console.note(&format!("model: {} ({from}); another one is named as in `yirage run MODEL`", found.name));
        return Ok(Located { name: found.name, path: found.path });
    };
    named(name, layers, console)
}

/// Finds the model `name`: as a path, in the folder of `--models`, then by catalogue or hub, fetched where it is not
/// here.
///
/// # Errors
/// As [`locate`].
pub(crate) fn named(name: &str, layers: &Layers, console: &Console) -> Result<Located, Failure> {
    let located = |path: PathBuf| Located { name: name.to_owned(), path };
    if Path::new(name).exists() {
        return Ok(located(name.into()));
    }
    let folder = layers.text("models").map(Path::new);
    if let Some(missing) = folder.filter(|f| !f.is_dir()) {
        console.note(&format!("{}: {} is no folder", layers.label("models"), missing.display()));
    }
    if let Some(path) = folder.and_then(|f| in_folder(f, name)) {
        return Ok(located(path));
    }
    let hub = fetching_hub(layers, console);
    let found = hub.resolve(&ModelRef::parse(name)?, &Shown::on(console, &hub))?;
    Ok(located(found.path))
}

/// `name` or `name.gguf` in `folder`.
fn in_folder(folder: &Path, name: &str) -> Option<PathBuf> {
    [folder.join(name), folder.join(format!("{name}.gguf"))].into_iter().find(|p| p.exists())
}
