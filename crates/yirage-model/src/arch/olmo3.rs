//! OLMo 3 (Ai2, November 2025): OLMo 2 with windows in three of four layers, which have a rotation of their own.

use super::attention::AttentionHeads;
use super::emit::ModelBuilder;
use super::olmo2;
use crate::config::LayerType;
use crate::error::ModelError;
use serde_json::Value;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    let nested = |v: &Value| v.get(LayerType::Full.name()).is_some() || v.get(LayerType::Sliding.name()).is_some();
    // The reference code overlooks a section that is not divided by kinds of layers.
    if e.config.get("rope_parameters").is_some_and(|v| !nested(v)) {
        return Err(e.config.invalid("rope_parameters", "full_attention and sliding_attention in it"));
    }
    let h = AttentionHeads::read(e)?;
    let full = e.rotation(LayerType::Full, h.width, false)?;
    let windowed = e.rotation(LayerType::Sliding, h.width, false)?;
    olmo2::frame(e, &h, [full, windowed])
}
