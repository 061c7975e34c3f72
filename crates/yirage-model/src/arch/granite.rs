//! Granite 3 (IBM, 2024): Llama with four constant factors: of the embedding, of scores, of what each part of a layer
//! adds, and (as a divisor) of logits.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::{Decoder, SublayerFn};
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::op::Map;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let mlp = GatedMlp::read(e, e.config.bool_or("mlp_bias", false)?)?;
    with_feed_forward(e, &|e, l, x| mlp.emit_layer(e, l, x))
}

/// The model around a feed-forward part, which is all that the mixture of experts does otherwise.
pub(super) fn with_feed_forward(e: &mut ModelBuilder<'_>, feed_forward: SublayerFn<'_>) -> Result<(), ModelError> {
    let h = AttentionHeads::read(e)?;
    let bias = e.config.bool_or("attention_bias", false)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let scale = e.positive("attention_multiplier", 1.0)? as f32;
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
    let attend = LayerAttention::full(Some(rotation), scale);
    decoder.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, bias)?;
            let a = attend.emit(e, l, &h, qkv)?;
            let a = h.output(e, l, a, bias)?;
            e.scale(&format!("l{l}.attn_part"), a, part)
        },
        &|e, l, x| {
            let f = feed_forward(e, l, x)?;
            e.scale(&format!("l{l}.ffn_part"), f, part)
        },
    )
}
