//! Hunyuan (Tencent, 2025): Llama with norms of each query and key head, after their rotation. The mixture has experts beside
//! a shared one in every layer.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::{Decoder, SublayerFn};
use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::F32;
use yirage_ir::op::{RmsNorm, Route, Scoring};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let mlp = GatedMlp::read(e, false)?;
    frame(e, &|e, l, x| mlp.emit_layer(e, l, x))
}

/// The mixture of experts.
pub(super) fn emit_moe(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    const NAMES: ExpertTensorNames = ExpertTensorNames::Separate {
        router: "mlp.gate.wg",
        experts: "mlp.experts",
        parts: ["gate_proj", "up_proj", "down_proj"],
    };
    let mlp = GatedMlp::read(e, false)?;
    let top_k = e.config.u32_per_layer("num_experts_per_tok", e.config.layers()?)?[0];
    let route = Route { top_k, scoring: Scoring::Softmax, normalize: true, scale: F32(1.0), groups: 1, top_groups: 1 };
    let experts = MoeLayer::read(e, "intermediate_size", route)?;
    frame(e, &|e, l, x| {
        let routed = experts.emit(e, l, x, &NAMES, None)?;
        let beside = mlp.emit(e, &format!("l{l}.shared"), &format!("model.layers.{l}.mlp.shared_mlp"), x)?;
        e.add(&format!("l{l}.ffn.sum"), routed, beside)
    })
}

/// The model around a feed-forward part.
fn frame(e: &mut ModelBuilder<'_>, feed_forward: SublayerFn<'_>) -> Result<(), ModelError> {
    let h = AttentionHeads::read(e)?;
    let bias = e.config.bool_or("attention_bias", false)?;
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
        feed_forward,
    )
}
