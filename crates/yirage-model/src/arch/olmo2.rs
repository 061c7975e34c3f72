//! OLMo 2 (arXiv 2501.00656): norms only after each part, and norms of whole queries and keys.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::{ModelBuilder, Rotation};
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::op::RmsNorm;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    let h = AttentionHeads::read(e)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    frame(e, &h, [rotation, rotation])
}

/// What both generations share; `rotations` are those of layers with full attention and with a window.
pub(super) fn frame(e: &mut ModelBuilder<'_>, h: &AttentionHeads, rotations: [Rotation; 2]) -> Result<(), ModelError> {
    e.plain_storage()?;
    e.with_post_norms();
    let decoder = Decoder::read(e)?;
    let bias = e.config.bool_or("attention_bias", false)?;
    let mlp = GatedMlp::read(e, false)?;
    let windows = e.config.windows()?;
    let (q_norm, k_norm) =
        (RmsNorm { width: h.q(), ..decoder.norm.clone() }, RmsNorm { width: h.k(), ..decoder.norm.clone() });
    decoder.emit_post_norms(
        e,
        &|e, l, x| {
            let window = windows[l as usize];
            let rotation = rotations[usize::from(window.is_some())];
            let qkv = h.project(e, l, x, bias)?;
            let qkv = h.normalise(e, l, qkv, [&q_norm, &k_norm])?;
            let a = LayerAttention::full(Some(rotation), h.scale()).within(window).emit(e, l, h, qkv)?;
            h.output(e, l, a, bias)
        },
        &|e, l, x| mlp.emit_layer(e, l, x),
    )
}
