//! Mistral (Jiang et al., arXiv 2310.06825): Llama with a sliding window. In Ministral
//! (2024) some layers are without one; in Ministral 3 (2025) none has one, and queries grow with their position.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let mlp = GatedMlp::read(e, false)?;
    // GGUF files hold the rows of q and k in the order of neighbouring pairs.
    let rotation = e.rotation(LayerType::Full, h.width, e.is_gguf())?;
    let growth = e.config.query_growth()?;
    let of_queries = growth.map(|growth| e.growing_rotation(rotation, h.width, growth)).transpose()?;
    let windows = e.config.windows()?;
    Decoder::read(e)?.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, false)?;
            let attend = LayerAttention { of_queries, ..LayerAttention::full(Some(rotation), h.scale()) };
            let attend = attend.within(windows[l as usize]);
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, false)
        },
        &|e, l, x| mlp.emit_layer(e, l, x),
    )
}
