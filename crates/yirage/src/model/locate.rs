//! From what `--model` says to files.

use crate::console::Console;
use crate::failure::Failure;
use crate::options::Layers;
use std::path::{Path, PathBuf};

/// A model that is on this machine now.
pub(crate) struct Located {
    /// How the user called it.
    pub(crate) name: String,
    /// File or folder.
    pub(crate) path: PathBuf,
}

/// Finds the model that the options name: as a path, in the folder of `--models`, then by catalogue or hub.
///
/// # Errors
/// [`Failure::Other`] when it is nowhere, saying where it was looked for.
pub(crate) fn locate(layers: &Layers, _console: &Console) -> Result<Located, Failure> {
    let Some(name) = layers.text("model") else {
        return Err(Failure::Usage("no model was given; use --model FILE".into()));
    };
    let found = |path: PathBuf| Located { name: name.to_owned(), path };
    if Path::new(name).exists() {
        return Ok(found(name.into()));
    }
    let folder = layers.text("models").map(Path::new);
    if let Some(path) = folder.and_then(|f| in_folder(f, name)) {
        return Ok(found(path));
    }
    let also = folder.map(|f| format!(", nor is it in {}", f.display())).unwrap_or_default();
    Err(Failure::Other(format!("{name}: no such file or folder{also}; give the path of a model with --model")))
}

/// `name` or `name.gguf` in `folder`.
fn in_folder(folder: &Path, name: &str) -> Option<PathBuf> {
    [folder.join(name), folder.join(format!("{name}.gguf"))].into_iter().find(|p| p.exists())
}
