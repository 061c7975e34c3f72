//! Qwen3, dense (arXiv 2505.09388): norms of each query and key head instead of biases.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::{Decoder, SublayerFn};
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::op::RmsNorm;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let mlp = GatedMlp::read(e, false)?;
    with_feed_forward(e, &|e, l, x| mlp.emit_layer(e, l, x))
}

/// The model around a feed-forward part, which is all that the mixture of experts does otherwise.
pub(super) fn with_feed_forward(e: &mut ModelBuilder<'_>, feed_forward: SublayerFn<'_>) -> Result<(), ModelError> {
    let h = AttentionHeads::read(e)?;
    let decoder = Decoder::read(e)?;
    let bias = e.config.bool_or("attention_bias", false)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let windows = e.config.windows()?;
    let head_norm = RmsNorm { width: h.width, ..decoder.norm.clone() };
    decoder.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, bias)?;
            let qkv = h.normalise(e, l, qkv, [&head_norm, &head_norm])?;
            let attend = LayerAttention::full(Some(rotation), h.scale()).within(windows[l as usize]);
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, bias)
        },
        feed_forward,
    )
}
