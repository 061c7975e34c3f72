//! `yirage pull`: fetches a model into the cache.

use crate::console::Console;
use crate::download::{DownloadDisplay, fetching_hub};
use crate::failure::CliFailure;
use crate::interrupt::Interrupt;
use crate::options::Layers;
use serde_json::json;
use yirage_hub::{CacheVerification, CatalogueEntry, ModelRef};

/// Runs the command; without a name, for the default model.
///
/// # Errors
/// [`CliFailure::Hub`] with every route that was tried. An interrupt ends the process; what has come is kept.
pub(crate) fn run(layers: &Layers, console: &Console, name: Option<&str>) -> Result<(), CliFailure> {
    let _ends_the_process = Interrupt::install()?;
    let verify = if layers.switch("verify")? { CacheVerification::Always } else { CacheVerification::AfterCrash };
    let hub = fetching_hub(layers, console);
    let shipped = name.map(|name| hub.unpack(name)).transpose()?.flatten();
    let found = match shipped {
        Some(found) => found,
        None => {
            let reference = ModelRef::parse(name.unwrap_or(CatalogueEntry::default_model().name))?;
            hub.pull(&reference, verify, &DownloadDisplay::on(console, &hub))?
        }
    };
    if console.json {
        return console.value(&json!({"model": found.name, "path": found.path}));
    }
    console.line(&found.path.display().to_string())
}
