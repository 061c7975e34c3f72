//! StableLM 2 (Stability AI, arXiv 2402.17834): layer norms, a quarter of each head rotates; parts of a layer one after
//! the other, or in parallel from one norm.

use super::attention::{AttentionHeads, LayerAttention};
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let (hidden, eps) = (h.hidden, e.eps("layer_norm_eps")?);
    let mlp = GatedMlp::read(e, false)?;
    let bias = e.config.bool_or("use_qkv_bias", false)?;
    let parallel = e.config.bool_or("use_parallel_residual", false)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    let mut x = e.embed("model.embed_tokens.weight", hidden, 1.0)?;
    for l in 0..e.config.layers()? {
        let hf = format!("model.layers.{l}");
        let n = e.layer_norm(&format!("l{l}.attn_norm"), &format!("{hf}.input_layernorm"), x, hidden, eps)?;
        let qkv = h.project(e, l, n, bias)?;
        let a = attend.emit(e, l, &h, qkv)?;
        let a = h.output(e, l, a, false)?;
        let mid = e.add(&format!("l{l}.mid"), x, a)?;
        let norm = format!("{hf}.post_attention_layernorm");
        let n = if parallel { n } else { e.layer_norm(&format!("l{l}.ffn_norm"), &norm, mid, hidden, eps)? };
        let f = mlp.emit_layer(e, l, n)?;
        x = e.add(&format!("l{l}.res"), mid, f)?;
    }
    let x = e.wanted(x)?;
    let x = e.layer_norm("norm", "model.norm", x, hidden, eps)?;
    e.logits("lm_head", x, hidden, None)
}
