//! Granite 3 (IBM, 2024): Llama with four constant factors: of the embedding, of scores, of what each part of a layer
//! adds, and (as a divisor) of logits.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::{Decoder, SublayerFn};
use super::emit::{ModelBuilder, Rotation};
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::ValueId;
use yirage_ir::op::Map;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let mlp = GatedMlp::read(e, e.config.bool_or("mlp_bias", false)?)?;
    with_feed_forward(e, &|e, l, x| mlp.emit_layer(e, l, x))
}

/// The model around a feed-forward part, which is all that the mixture of experts does otherwise.
pub(super) fn with_feed_forward(e: &mut ModelBuilder<'_>, feed_forward: SublayerFn<'_>) -> Result<(), ModelError> {
    let width = e.size("head_dim")?;
    // GGUF files hold the rows of q and k in the order of neighbouring pairs.
    let rotation = e.rotation(LayerType::Full, width, e.is_gguf())?;
    let attention = GraniteAttention::read(e, Some(rotation))?;
    frame(e, &|e, l, x| attention.emit(e, l, x), feed_forward)
}

/// Attention with a factor of scores of its own.
pub(super) struct GraniteAttention {
    heads: AttentionHeads,
    bias: bool,
    attend: LayerAttention,
}

impl GraniteAttention {
    pub(super) fn read(e: &ModelBuilder<'_>, rotation: Option<Rotation>) -> Result<GraniteAttention, ModelError> {
        let scale = e.positive("attention_multiplier", 1.0)? as f32;
        Ok(GraniteAttention {
            heads: AttentionHeads::read(e)?,
            bias: e.config.bool_or("attention_bias", false)?,
            attend: LayerAttention::full(rotation, scale),
        })
    }

    pub(super) fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let qkv = self.heads.project(e, l, x, self.bias)?;
        let a = self.attend.emit(e, l, &self.heads, qkv)?;
        self.heads.output(e, l, a, self.bias)
    }
}

/// The model around what mixes positions and a feed-forward part.
pub(super) fn frame(
    e: &mut ModelBuilder<'_>,
    mixer: SublayerFn<'_>,
    feed_forward: SublayerFn<'_>,
) -> Result<(), ModelError> {
    let part = e.positive("residual_multiplier", 1.0)? as f32;
    let divisor = e.positive("logits_scaling", 1.0)?;
    if divisor == 0.0 {
        return Err(e.config.invalid("logits_scaling", "a number above 0"));
    }
    let decoder = Decoder {
        embedding_scale: e.positive("embedding_multiplier", 1.0)? as f32,
        after_logits: Some(Map::scale((1.0 / divisor) as f32)),
        ..Decoder::read(e)?
    };
    decoder.emit(
        e,
        &|e, l, x| {
            let a = mixer(e, l, x)?;
            e.scale(&format!("l{l}.attn_part"), a, part)
        },
        &|e, l, x| {
            let f = feed_forward(e, l, x)?;
            e.scale(&format!("l{l}.ffn_part"), f, part)
        },
    )
}
