//! Llama (Touvron et al., 2023; Llama 3, 2024): norms before, grouped heads, SwiGLU.

use super::attention::{Attend, Heads};
use super::emit::Emit;
use super::ffn::{self, Gated};
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::F32;
use yirage_ir::op::RmsNorm;

pub(super) fn emit(e: &mut Emit<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = Heads::read(e)?;
    let norm = RmsNorm { eps: F32(e.eps("rms_norm_eps")?), width: h.hidden, unit_offset: false };
    let bias = e.config.bool_or("attention_bias", false)?;
    let mlp = Gated {
        hidden: h.hidden,
        inner: e.size("intermediate_size")?,
        kind: ffn::gate(e)?,
        bias: e.config.bool_or("mlp_bias", false)?,
    };
    // GGUF files hold the rows of q and k in the order of neighbouring pairs.
    let rotation = e.rotation(LayerType::Full, h.width, e.is_gguf())?;
    let attend = Attend::full(Some(rotation), h.scale());
    let mut x = e.embed("model.embed_tokens.weight", h.hidden, 1.0)?;
    for l in 0..e.config.layers()? {
        let hf = format!("model.layers.{l}");
        let n = e.rms_norm(&format!("l{l}.attn_norm"), &format!("{hf}.input_layernorm"), x, norm.clone())?;
        let qkv = h.project(e, l, n, bias)?;
        let a = attend.emit(e, l, &h, qkv)?;
        let a = h.output(e, l, a, bias)?;
        x = e.add(&format!("l{l}.mid"), x, a)?;
        let n = e.rms_norm(&format!("l{l}.ffn_norm"), &format!("{hf}.post_attention_layernorm"), x, norm.clone())?;
        let f = mlp.emit(e, &format!("l{l}.ffn"), &format!("{hf}.mlp"), n)?;
        x = e.add(&format!("l{l}.out"), x, f)?;
    }
    let x = e.wanted(x)?;
    let x = e.rms_norm("norm", "model.norm", x, norm)?;
    e.logits("lm_head", x, h.hidden, 0.0)
}
