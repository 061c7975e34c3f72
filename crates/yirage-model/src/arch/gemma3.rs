//! Gemma 3 (arXiv 2503.19786), text: as Gemma 2, with norms of each query and key head, and a rotation of their own for
//! the layers with a window.

use super::attention::AttentionHeads;
use super::emit::ModelBuilder;
use super::gemma2;
use crate::config::LayerType;
use crate::error::ModelError;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    if e.config.bool_or("use_bidirectional_attention", false)? {
        return Err(ModelError::Unsupported {
            what: "attention to later positions".into(),
            why: format!("{}: use_bidirectional_attention asks for it, as embedding models do", e.config.file()),
        });
    }
    let h = AttentionHeads::read(e)?;
    let full = e.rotation(LayerType::Full, h.width, false)?;
    let windowed = e.rotation(LayerType::Sliding, h.width, false)?;
    gemma2::frame(e, &h, [full, windowed], true)
}
