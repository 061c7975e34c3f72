//! Seed-OSS (ByteDance, August 2025): Llama with biases that each projection of attention has for itself.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    if e.is_gguf() {
        // There the norm before the feed-forward part has this name.
        e.with_post_norms();
    }
    let h = AttentionHeads::read(e)?;
    let (bias, out_bias) = (e.config.bool_or("attention_bias", true)?, e.config.bool_or("attention_out_bias", false)?);
    let mlp = GatedMlp::read(e, e.config.bool_or("mlp_bias", false)?)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    Decoder::read(e)?.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, bias)?;
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, out_bias)
        },
        &|e, l, x| mlp.emit_layer(e, l, x),
    )
}
