//! Qwen1.5-MoE and Qwen2-MoE (arXiv 2407.10671): Qwen2 with experts beside a shared one, whose result has a gate.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use super::ffn::GatedMlp;
use super::qwen3moe;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::ValueId;
use yirage_ir::expr::Func;
use yirage_ir::op::Map;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let dense = qwen3moe::dense_layers(e)?;
    let mlp = GatedMlp::read(e, false)?;
    let experts = MoeLayer::read(e, "moe_intermediate_size", qwen3moe::route(e)?)?;
    let shared = GatedMlp { inner: e.size("shared_expert_intermediate_size")?, ..mlp };
    let bias = e.config.bool_or("qkv_bias", true)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let windows = e.config.windows()?;
    Decoder::read(e)?.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, bias)?;
            let attend = LayerAttention::full(Some(rotation), h.scale()).within(windows[l as usize]);
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, false)
        },
        &|e, l, x| {
            if dense[l as usize] {
                return mlp.emit_layer(e, l, x);
            }
            let routed = experts.emit(e, l, x, &ExpertTensorNames::USUAL, None)?;
            let beside = gated(e, l, x, &shared)?;
            e.add(&format!("l{l}.ffn.sum"), routed, beside)
        },
    )
}

/// The shared expert times the sigmoid of its gate, one number a token.
pub(super) fn gated(e: &mut ModelBuilder<'_>, l: u32, x: ValueId, shared: &GatedMlp) -> Result<ValueId, ModelError> {
    let hf = format!("model.layers.{l}.mlp.shared_expert");
    let expert = shared.emit(e, &format!("l{l}.shared"), &hf, x)?;
    let open = e.linear(&format!("l{l}.shared.open"), &format!("{hf}_gate"), x, [1, shared.hidden], false)?;
    e.op(&format!("l{l}.shared.gated"), Map::gated(Func::Sigmoid), &[open, expert])
}
