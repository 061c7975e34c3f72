//! Gemma 2 (arXiv 2408.00118): norms before and after each part, soft caps of scores and logits, windows in every
//! other layer.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::{ModelBuilder, Rotation};
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::op::{Map, RmsNorm};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    let h = AttentionHeads::read(e)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    frame(e, &h, [rotation, rotation], false)
}

/// What both generations share; `rotations` are those of layers with full attention and with a window, `head_norms`
/// says whether queries and keys are normalised.
pub(super) fn frame(
    e: &mut ModelBuilder<'_>,
    h: &AttentionHeads,
    rotations: [Rotation; 2],
    head_norms: bool,
) -> Result<(), ModelError> {
    e.plain_storage()?;
    e.with_post_norms();
    let mut decoder = Decoder::read(e)?;
    // Safetensors hold the distance of the weight from 1, GGUF files the weight.
    decoder.norm.unit_offset = !e.is_gguf();
    let head_norm = RmsNorm { width: h.width, ..decoder.norm.clone() };
    let bias = e.config.bool_or("attention_bias", false)?;
    let mlp = GatedMlp::read(e, false)?;
    let scalar = e.positive("query_pre_attn_scalar", f64::from(h.width))?;
    if scalar == 0.0 {
        return Err(e.config.invalid("query_pre_attn_scalar", "a number above 0"));
    }
    let scale = 1.0 / scalar.sqrt();
    let softcap = e.positive("attn_logit_softcapping", 0.0)?;
    let windows = e.config.windows()?;
    let mut x = e.embed("model.embed_tokens.weight", h.hidden, f64::from(h.hidden).sqrt() as f32)?;
    for l in 0..e.config.layers()? {
        let norm = |e: &mut ModelBuilder<'_>, name: &str, hf: &str, x| {
            e.rms_norm(&format!("l{l}.{name}"), &format!("model.layers.{l}.{hf}_layernorm"), x, &decoder.norm)
        };
        let n = norm(e, "attn_norm", "input", x)?;
        let mut qkv = h.project(e, l, n, bias)?;
        if head_norms {
            qkv = h.normalise(e, l, qkv, [&head_norm, &head_norm])?;
        }
        let window = windows[l as usize];
        let rotation = rotations[usize::from(window.is_some())];
        let attend = LayerAttention {
            softcap: softcap as f32,
            ..LayerAttention::full(Some(rotation), scale as f32).within(window)
        };
        let a = attend.emit(e, l, h, qkv)?;
        let a = h.output(e, l, a, bias)?;
        let a = norm(e, "attn_post_norm", "post_attention", a)?;
        x = e.add(&format!("l{l}.mid"), x, a)?;
        let n = norm(e, "ffn_norm", "pre_feedforward", x)?;
        let f = mlp.emit_layer(e, l, n)?;
        let f = norm(e, "ffn_post_norm", "post_feedforward", f)?;
        x = e.add(&format!("l{l}.res"), x, f)?;
    }
    let cap = e.positive("final_logit_softcapping", 0.0)? as f32;
    decoder.after_logits = (cap > 0.0).then(|| Map::softcap(cap));
    decoder.head(e, x)
}
