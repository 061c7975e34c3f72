//! Where repacked weights are kept, and how many.

use crate::failure::CliFailure;
use crate::options::Layers;
use std::path::PathBuf;
use yirage_engine::PackedOptions;
use yirage_hub::HubEnv;

/// Largest limit that fits into a number of bytes.
const MAX_GIB: f64 = (1u64 << 33) as f64;

/// Said where neither an option nor the environment names a place.
const HOMELESS: &str = "HOME is not set: set it, or name a folder with --weight-cache-dir";

/// The folder of repacked weights.
///
/// # Errors
/// [`CliFailure::Usage`] where neither an option nor the environment names a place.
pub(crate) fn weight_cache_folder(layers: &Layers) -> Result<PathBuf, CliFailure> {
    folder(layers).ok_or_else(|| CliFailure::Usage(format!("there is no place for repacked weights; {HOMELESS}")))
}

fn folder(layers: &Layers) -> Option<PathBuf> {
    if let Some(folder) = layers.text("weight-cache-dir") {
        return Some(folder.into());
    }
    let env = HubEnv::from_env();
    if env.homeless { None } else { Some(env.packed_weights()) }
}

/// What the engine is told, `None` where nothing is kept, and what the user is told: no answer depends on a place for
/// weights.
///
/// # Errors
/// [`CliFailure::Usage`] naming the option.
pub(super) fn resolve(layers: &Layers) -> Result<(Option<PackedOptions>, Option<String>), CliFailure> {
    let allowed = |gib: &f64| (0.0..=MAX_GIB).contains(gib);
    let gib = layers.number("weight-cache-limit", &format!("a number of GiB from 0 to {MAX_GIB}"), allowed)?;
    if !layers.switch("weight-cache")? {
        return Ok((None, None));
    }
    let limit = (gib.unwrap_or_default() * (1u64 << 30) as f64) as u64;
    Ok(match folder(layers) {
        Some(folder) => (Some(PackedOptions { folder, limit }), None),
        None => (None, Some(format!("repacked weights and measurements are not kept; {HOMELESS}"))),
    })
}
