//! EXAONE 4 (LG AI Research, arXiv 2507.11407): norms after each part, norms of each query and key head, and, in models
//! with a window, rotations only in the layers that have it.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::op::RmsNorm;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    e.with_post_norms();
    let h = AttentionHeads::read(e)?;
    let decoder = Decoder::read(e)?;
    let mlp = GatedMlp::read(e, false)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let (windows, hybrid) = (e.config.windows()?, e.config.has("sliding_window"));
    let norm = RmsNorm { width: h.width, ..decoder.norm.clone() };
    decoder.emit_post_norms(
        e,
        &|e, l, x| {
            let window = windows[l as usize];
            let rotation = (!hybrid || window.is_some()).then_some(rotation);
            let qkv = h.project(e, l, x, false)?;
            let qkv = h.normalise(e, l, qkv, [&norm, &norm])?;
            let a = LayerAttention::full(rotation, h.scale()).within(window).emit(e, l, &h, qkv)?;
            h.output(e, l, a, false)
        },
        &|e, l, x| mlp.emit_layer(e, l, x),
    )
}
