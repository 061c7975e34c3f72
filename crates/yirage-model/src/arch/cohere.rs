//! Cohere's Command R (2024): both parts of a layer read the same norm, which has no bias, in parallel; neighbouring
//! elements rotate, and logits have a factor.

use super::attention::{AttentionHeads, LayerAttention};
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::op::Map;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    let layers = e.config.layers()? as usize;
    frame(e, &vec![(true, None); layers])
}

/// What both generations share: of each layer, whether it rotates, and its window.
pub(super) fn frame(e: &mut ModelBuilder<'_>, layers: &[(bool, Option<u32>)]) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let (hidden, eps) = (h.hidden, e.eps("layer_norm_eps")?);
    let bias = e.config.bool_or("attention_bias", false)?;
    let mlp = GatedMlp::read(e, false)?;
    let rotation = e.rotation(LayerType::Full, h.width, true)?;
    let factor = e.positive("logit_scale", 0.0625)? as f32;
    let mut x = e.embed("model.embed_tokens.weight", hidden, 1.0)?;
    for (l, &(rotates, window)) in (0..).zip(layers) {
        let norm = format!("model.layers.{l}.input_layernorm");
        let n = e.layer_norm_unbiased(&format!("l{l}.norm"), &norm, x, hidden, eps)?;
        let qkv = h.project(e, l, n, bias)?;
        let attend = LayerAttention::full(rotates.then_some(rotation), h.scale()).within(window);
        let a = attend.emit(e, l, &h, qkv)?;
        let a = h.output(e, l, a, bias)?;
        let mid = e.add(&format!("l{l}.mid"), x, a)?;
        let f = mlp.emit_layer(e, l, n)?;
        x = e.add(&format!("l{l}.res"), mid, f)?;
    }
    let x = e.wanted(x)?;
    let x = e.layer_norm_unbiased("norm", "model.norm", x, hidden, eps)?;
    e.logits("lm_head", x, hidden, Some(Map::scale(factor)))
}
