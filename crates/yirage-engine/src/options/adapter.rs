//! Adapters that stand beside a model.

use crate::adapter_error::AdapterError;
use crate::limits::MAX_ADAPTERS;
use yirage_model::LoraAdapter;

/// A low-rank adapter, as requests call it.
#[derive(Clone, PartialEq, Debug)]
pub struct EngineAdapter {
    /// What requests call it; no two have one name.
    pub name: String,
    /// Its matrices.
    pub adapter: LoraAdapter,
    /// How much of it requests get that name no adapters; 0 is nothing of it.
    pub scale: f32,
}

/// How much of an adapter a request wants.
#[derive(Clone, PartialEq, Debug)]
pub struct AdapterScale {
    /// [`EngineAdapter::name`].
    pub name: String,
    /// What its product is multiplied by; finite.
    pub scale: f32,
}

/// Checks names and scales of a model's adapters.
pub(crate) fn check_adapters(adapters: &[EngineAdapter], ranks: u32) -> Result<(), AdapterError> {
    if adapters.len() > MAX_ADAPTERS {
        return Err(AdapterError::TooMany { count: adapters.len() });
    }
    if ranks > 1 && !adapters.is_empty() {
        return Err(AdapterError::Ranks { ranks });
    }
    for (at, EngineAdapter { name, scale, .. }) in adapters.iter().enumerate() {
        if adapters[..at].iter().any(|other| other.name == *name) {
            return Err(AdapterError::Twice { name: name.clone() });
        }
        check_scale(name, *scale)?;
    }
    Ok(())
}

/// Whether a scale is a number.
pub(crate) fn check_scale(name: &str, scale: f32) -> Result<(), AdapterError> {
    if scale.is_finite() { Ok(()) } else { Err(AdapterError::Scale { name: name.to_owned(), scale }) }
}
