//! Which adapters stand beside the model or are merged into it.

use crate::failure::CliFailure;
use crate::options::Layers;
use std::path::Path;
use yirage_engine::EngineAdapter;
use yirage_model::{Checkpoint, LoraAdapter, ModelError};

/// The adapters of the options.
#[derive(Default)]
pub(crate) struct LoraSettings {
    /// All of them, in the order of their numbers.
    pub(crate) adapters: Vec<EngineAdapter>,
    /// Whether they are added to the weights.
    pub(crate) merge: bool,
}

impl LoraSettings {
    /// Reads the options and the adapters' files.
    ///
    /// # Errors
    /// [`CliFailure::Usage`] naming the option; files that are no adapters.
    pub(crate) fn resolve(layers: &Layers) -> Result<LoraSettings, CliFailure> {
        let mut adapters = Vec::new();
        for file in listed(layers, "lora") {
            adapters.push(open(last_part(&file), &file, 1.0)?);
        }
        for scaled in listed(layers, "lora-scaled") {
            let parts = scaled.rsplit_once(':');
            let parsed = parts.and_then(|(file, scale)| Some((file, scale.parse::<f32>().ok()?)));
            let Some((file, scale)) = parsed.filter(|(_, scale)| scale.is_finite()) else {
                return Err(usage(layers, "lora-scaled", "FILE:SCALE", &scaled));
            };
            adapters.push(open(last_part(file), file, scale)?);
        }
        for module in layers.texts("lora-modules") {
            let Some((name, path)) = module.split_once('=').filter(|(name, path)| !name.is_empty() && !path.is_empty())
            else {
                return Err(usage(layers, "lora-modules", "NAME=PATH", module));
            };
            // A request names it where it wants it.
            adapters.push(open(name.to_owned(), path, 0.0)?);
        }
        let merge = layers.switch("lora-merge")?;
        if let (true, [named, ..]) = (merge, layers.texts("lora-modules")) {
            let what = format!("{named} is named by requests, so it cannot be merged");
            return Err(CliFailure::Usage(format!("{}: {what}", layers.label("lora-merge"))));
        }
        Ok(LoraSettings { adapters, merge })
    }

    /// Opens a model's files, with the adapters added to its weights where they are to be merged.
    ///
    /// # Errors
    /// Files that are no model, and adapters that do not fit it.
    pub(crate) fn open(&self, path: &Path) -> Result<Checkpoint, ModelError> {
        let mut checkpoint = Checkpoint::open(path)?;
        if self.merge {
            self.adapters.iter().try_for_each(|of| of.adapter.merge_into(&mut checkpoint, of.scale))?;
        }
        Ok(checkpoint)
    }

    /// The adapters that stand beside the model.
    pub(crate) fn beside(&self) -> Vec<EngineAdapter> {
        if self.merge { Vec::new() } else { self.adapters.clone() }
    }
}

/// The values of an option, of which one may name several with commas between.
fn listed(layers: &Layers, name: &str) -> Vec<String> {
    let parts = |value: &String| match Path::new(value).exists() {
        true => vec![value.clone()],
        false => value.split(',').map(str::to_owned).collect(),
    };
    layers.texts(name).iter().flat_map(parts).collect()
}

/// What an adapter is called that nobody named: clients see it, so nothing of its place is in it.
fn last_part(path: &str) -> String {
    Path::new(path).file_name().map_or_else(|| path.to_owned(), |name| name.to_string_lossy().into_owned())
}

fn open(name: String, path: &str, scale: f32) -> Result<EngineAdapter, CliFailure> {
    Ok(EngineAdapter { name, adapter: LoraAdapter::open(path)?, scale })
}

fn usage(layers: &Layers, name: &str, expected: &str, found: &str) -> CliFailure {
    CliFailure::Usage(format!("{}: expected {expected}, got {found:?}", layers.label(name)))
}
