//! OLMo 2 (arXiv 2501.00656): norms only after each part, and norms of whole queries and keys.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::op::RmsNorm;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let decoder = Decoder::read(e)?;
    let bias = e.config.bool_or("attention_bias", false)?;
    let mlp = GatedMlp::read(e, false)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    let (norm, q_norm) = (&decoder.norm, RmsNorm { width: h.q(), ..decoder.norm.clone() });
    let k_norm = RmsNorm { width: h.k(), ..decoder.norm.clone() };
    let mut x = e.embed("model.embed_tokens.weight", h.hidden, 1.0)?;
    for l in 0..e.config.layers()? {
        let hf = format!("model.layers.{l}");
        let qkv = h.project(e, l, x, bias)?;
        let qkv = h.normalise(e, l, qkv, [&q_norm, &k_norm])?;
        let a = attend.emit(e, l, &h, qkv)?;
        let a = h.output(e, l, a, bias)?;
        let a = e.rms_norm(&format!("l{l}.attn_norm"), &format!("{hf}.post_attention_layernorm"), a, norm)?;
        x = e.add(&format!("l{l}.mid"), x, a)?;
        let f = mlp.emit_layer(e, l, x)?;
        let f = e.rms_norm(&format!("l{l}.ffn_norm"), &format!("{hf}.post_feedforward_layernorm"), f, norm)?;
        x = e.add(&format!("l{l}.res"), x, f)?;
    }
    decoder.head(e, x, 0.0)
}
