//! Where repacked weights are kept, and how many.

use crate::failure::Failure;
use crate::options::Layers;
use std::path::PathBuf;
use yirage_engine::PackedOptions;
use yirage_hub::HubEnv;

/// Largest limit that fits into a number of bytes.
const MAX_GIB: f64 = (1u64 << 33) as f64;

/// Variables of which any says where things are kept, the last ones as the user's home.
const PLACES: [&str; 5] = ["HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME", "HOME", "USERPROFILE"];

/// The folder of repacked weights.
///
/// # Errors
/// [`Failure::Usage`] where neither an option nor the environment names a place.
pub(crate) fn weight_cache_folder(layers: &Layers) -> Result<PathBuf, Failure> {
    let is_set = |name: &&str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    match layers.text("weight-cache-dir") {
        Some(folder) => Ok(folder.into()),
        None if PLACES.iter().any(|name| is_set(&name)) => Ok(HubEnv::from_env().packed_weights()),
        None => Err(Failure::Usage(
            "there is no place for repacked weights: HOME is not set; set it, or name a folder with --weight-cache-dir, \
             or keep none with --no-weight-cache"
                .into(),
        )),
    }
}

/// What the engine is told; `None` where nothing is kept.
///
/// # Errors
/// [`Failure::Usage`] naming the option.
pub(super) fn resolve(layers: &Layers) -> Result<Option<PackedOptions>, Failure> {
    let allowed = |gib: &f64| (0.0..=MAX_GIB).contains(gib);
    let gib = layers.number("weight-cache-limit", &format!("a number of GiB from 0 to {MAX_GIB}"), allowed)?;
    if !layers.switch("weight-cache")? {
        return Ok(None);
    }
    let limit = (gib.unwrap_or_default() * (1u64 << 30) as f64) as u64;
    Ok(Some(PackedOptions { folder: weight_cache_folder(layers)?, limit }))
}
