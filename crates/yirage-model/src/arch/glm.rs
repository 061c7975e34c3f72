//! GLM-4 as first published (GLM Team, arXiv 2406.12793): neighbouring elements of the first part of each head rotate,
//! queries, keys and values have biases, gate and up are one tensor.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::{ModelBuilder, Rotation};
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::ValueId;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    let parts = GlmSublayers::read(e)?;
    let decoder = Decoder::read(e)?;
    decoder.emit(e, &|e, l, x| parts.attention(e, l, x), &|e, l, x| parts.mlp.emit_fused_layer(e, l, x))
}

/// The two parts of a layer, which both generations share.
pub(super) struct GlmSublayers {
    heads: AttentionHeads,
    rotation: Rotation,
    bias: bool,
    pub(super) mlp: GatedMlp,
}

impl GlmSublayers {
    /// From the usual keys.
    pub(super) fn read(e: &mut ModelBuilder<'_>) -> Result<GlmSublayers, ModelError> {
        e.plain_storage()?;
        let heads = AttentionHeads::read(e)?;
        let (bias, mlp) = (e.config.bool_or("attention_bias", true)?, GatedMlp::read(e, false)?);
        Ok(GlmSublayers { heads, rotation: e.rotation(LayerType::Full, heads.width, true)?, bias, mlp })
    }

    /// Emits layer `l`'s attention. GGUF files of the makers' own checkpoints have one tensor of queries, keys and values.
    pub(super) fn attention(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let h = &self.heads;
        let fused = e.is_gguf() && e.has(&format!("model.layers.{l}.self_attn.qkv_proj.weight"));
        let qkv = if fused { h.project_fused(e, l, x, self.bias)? } else { h.project(e, l, x, self.bias)? };
        let a = LayerAttention::full(Some(self.rotation), h.scale()).emit(e, l, h, qkv)?;
        h.output(e, l, a, false)
    }
}
