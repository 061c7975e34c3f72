//! Hunyuan, dense (Tencent, 2025): Llama with norms of each query and key head, after their rotation.

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
    let bias = e.config.bool_or("attention_bias", false)?;
    let mlp = GatedMlp::read(e, false)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let decoder = Decoder::read(e)?;
    let norm = RmsNorm { width: h.width, ..decoder.norm.clone() };
    let attend = LayerAttention::full(None, h.scale());
    decoder.emit(
        e,
        &|e, l, x| {
            let [q, k, v] = h.project(e, l, x, bias)?;
            let turned = |e: &mut ModelBuilder<'_>, part: &str, hf: &str, x| {
                let x = e.rotate(&format!("l{l}.{part}.rope"), x, h.width, rotation)?;
                e.rms_norm(&format!("l{l}.{part}.norm"), &format!("model.layers.{l}.self_attn.{hf}"), x, &norm)
            };
            let q = turned(e, "q", "query_layernorm", q)?;
            let k = turned(e, "k", "key_layernorm", k)?;
            let a = attend.emit(e, l, &h, [q, k, v])?;
            h.output(e, l, a, bias)
        },
        &|e, l, x| mlp.emit_layer(e, l, x),
    )
}
