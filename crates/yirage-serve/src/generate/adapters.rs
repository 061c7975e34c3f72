//! Which adapters a request gets: by the field `lora`, or by the name of its model.

use super::params::GenerationParams;
use crate::error::ApiError;
use crate::models::ModelLease;
use yirage_engine::AdapterScale;

/// What a request gets of adapters: those of its field, or the one that it names as its model; none is what the server has
/// set.
///
/// # Errors
/// Both; a number that no adapter has.
pub(super) fn wanted_adapters(
    held: &ModelLease,
    asked: &GenerationParams,
) -> Result<Option<Vec<AdapterScale>>, ApiError> {
    match (&held.adapter, &asked.lora) {
        (None, None) => Ok(None),
        (None, Some(scales)) => held.generator()?.named(scales, "lora").map(Some),
        (Some(name), None) => Ok(Some(vec![AdapterScale { name: name.clone(), scale: 1.0 }])),
        (Some(name), Some(_)) => Err(ApiError::field(
            "lora",
            format!("`lora`: `model` names the adapter {name:?} already; name the model itself"),
        )),
    }
}
