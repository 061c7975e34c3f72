//! Gemma (arXiv 2403.08295): Llama with norms whose weights are distances from 1, a scaled embedding and a GELU gate.

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
    let mlp = GatedMlp::read(e, false)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    let mut decoder = Decoder::read(e)?;
    // Safetensors hold the distance of the weight from 1, GGUF files the weight.
    decoder.norm.unit_offset = !e.is_gguf();
    decoder.embedding_scale = f64::from(h.hidden).sqrt() as f32;
    decoder.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, bias)?;
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, bias)
        },
        &|e, l, x| mlp.emit_layer(e, l, x),
    )
}
