//! StarCoder2 (arXiv 2402.19173): layer norms, a plain feed-forward part, biases everywhere, a sliding window.

use super::attention::{AttentionHeads, LayerAttention};
use super::emit::ModelBuilder;
use super::ffn;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::op::Map;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let (hidden, inner, eps) = (h.hidden, e.size("intermediate_size")?, e.eps("layer_norm_eps")?);
    let act = ffn::activation(e)?;
    let bias = e.config.bool_or("use_bias", true)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let windows = e.config.windows()?;
    let mut x = e.embed("model.embed_tokens.weight", hidden, 1.0)?;
    for (l, &window) in (0..).zip(&windows) {
        let hf = format!("model.layers.{l}");
        let n = e.layer_norm(&format!("l{l}.attn_norm"), &format!("{hf}.input_layernorm"), x, hidden, eps)?;
        let qkv = h.project(e, l, n, bias)?;
        let a = LayerAttention::full(Some(rotation), h.scale()).within(window).emit(e, l, &h, qkv)?;
        let a = h.output(e, l, a, bias)?;
        x = e.add(&format!("l{l}.mid"), x, a)?;
        let n = e.layer_norm(&format!("l{l}.ffn_norm"), &format!("{hf}.post_attention_layernorm"), x, hidden, eps)?;
        let fc = format!("{hf}.mlp.c_fc");
        let fc_bias = e.biased(bias, &format!("{fc}.bias"));
        let up = e.linear(&format!("l{l}.ffn.up"), &fc, n, [inner, hidden], fc_bias)?;
        let up = e.op(&format!("l{l}.ffn.act"), Map::of(act), &[up])?;
        let proj = format!("{hf}.mlp.c_proj");
        let proj_bias = e.biased(bias, &format!("{proj}.bias"));
        let f = e.linear(&format!("l{l}.ffn.down"), &proj, up, [hidden, inner], proj_bias)?;
        x = e.add(&format!("l{l}.res"), x, f)?;
    }
    let x = e.wanted(x)?;
    let x = e.layer_norm("norm", "model.norm", x, hidden, eps)?;
    e.logits("lm_head", x, hidden, None)
}
