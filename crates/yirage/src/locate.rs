//! From what `--model` says to files.

use crate::console::Console;
use crate::download::{DownloadDisplay, fetching_hub};
use crate::failure::CliFailure;
use crate::options::Layers;
use std::path::Path;
use yirage_session::LocalModel;

/// Finds the model that the options name ([`named`]). Without a name it is the default model.
///
/// # Errors
/// [`CliFailure::Hub`] when it is nowhere, saying where it was looked for and what to do.
pub(crate) fn locate(layers: &Layers, console: &Console) -> Result<LocalModel, CliFailure> {
    if let Some(name) = layers.text("model") {
        return named(name, layers, console);
    }
    let hub = fetching_hub(layers, console);
    let found = LocalModel::default_model(&hub, &DownloadDisplay::on(console, &hub))?;
    let path = found.path.display();
    let from = if found.fetched { format!("fetched to {path}") } else { path.to_string() };
    console.note(&format!("model: {} ({from}); another one is named as in `yirage run MODEL`", found.name));
    Ok(found)
}

/// Finds the model `name`: as a path, in the folder of `--models`, then by catalogue or hub, fetched where it is not
/// here.
///
/// # Errors
/// As [`locate`].
pub(crate) fn named(name: &str, layers: &Layers, console: &Console) -> Result<LocalModel, CliFailure> {
    let folder = layers.text("models").map(Path::new);
    if let Some(found) = LocalModel::here(name, folder) {
        return Ok(found);
    }
    if let Some(missing) = folder.filter(|f| !f.is_dir()) {
        console.note(&format!("{}: {} is no folder", layers.label("models"), missing.display()));
    }
    if name.contains(char::is_whitespace) && !name.contains(['/', '\\']) {
        let what =
            format!("{name:?} is no file, and no name of a model has a space; if it is the prompt, write -p {name:?}");
        return Err(CliFailure::Usage(what));
    }
    let hub = fetching_hub(layers, console);
    Ok(LocalModel::by_hub(name, &hub, &DownloadDisplay::on(console, &hub))?)
}
