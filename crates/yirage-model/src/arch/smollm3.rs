//! SmolLM3 (Hugging Face, July 2025): Llama where every n-th layer has no position embedding (NoPE, Yang et al.,
//! arXiv 2501.18795).

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let bias = e.config.bool_or("attention_bias", false)?;
    let mlp = GatedMlp::read(e, e.config.bool_or("mlp_bias", false)?)?;
    // GGUF files hold the rows of q and k in the order of neighbouring pairs.
    let rotation = e.rotation(LayerType::Full, h.width, e.is_gguf())?;
    let windows = e.config.windows()?;
    // 1 = the layer rotates, despite the key's name.
    let rotates = e.config.u32_per_layer("no_rope_layers", e.config.layers()?)?;
    Decoder::read(e)?.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, bias)?;
            let rotation = (rotates[l as usize] != 0).then_some(rotation);
            let a = LayerAttention::full(rotation, h.scale()).within(windows[l as usize]).emit(e, l, &h, qkv)?;
            h.output(e, l, a, bias)
        },
        &|e, l, x| mlp.emit_layer(e, l, x),
    )
}
