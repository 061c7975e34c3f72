//! Qwen3-Next (Alibaba, 2025): gated delta nets in three of four layers, attention with a gate in the others, experts as
//! Qwen2-MoE has them, and norms whose factors are stored less one. Qwen3.5 (2026) has a dense model too, and other tensors
//! of delta nets.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::{Decoder, SublayerFn};
use super::delta_net::{DeltaNet, of_groups};
use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use super::ffn::GatedMlp;
use super::{qwen2moe, qwen3moe};
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::expr::Func;
use yirage_ir::op::{Map, RmsNorm};
use yirage_ir::{F32, ValueId};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let dense = qwen3moe::dense_layers(e)?;
    let mlp = if dense.contains(&true) { Some(GatedMlp::read(e, false)?) } else { None };
    let experts = SharedMoe::read(e)?;
    frame(e, &|e, l, x| match &mlp {
        Some(mlp) if dense[l as usize] => mlp.emit_layer(e, l, x),
        _ => experts.emit(e, l, x),
    })
}

/// Experts beside a shared one.
struct SharedMoe {
    experts: MoeLayer,
    shared: GatedMlp,
}

impl SharedMoe {
    fn read(e: &ModelBuilder<'_>) -> Result<SharedMoe, ModelError> {
        let experts = MoeLayer::read(e, "moe_intermediate_size", qwen3moe::route(e)?)?;
        let (inner, hidden) = (e.size("shared_expert_intermediate_size")?, experts.hidden);
        Ok(SharedMoe { shared: GatedMlp { hidden, inner, gate: experts.gate, bias: false }, experts })
    }

    fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let routed = self.experts.emit(e, l, x, &ExpertTensorNames::USUAL, None)?;
        let beside = qwen2moe::gated(e, l, x, &self.shared)?;
        e.add(&format!("l{l}.ffn.sum"), routed, beside)
    }
}

/// Qwen3.5, dense.
pub(super) fn emit_dense_3_5(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let mlp = GatedMlp::read(e, false)?;
    frame(e, &|e, l, x| mlp.emit_layer(e, l, x))
}

/// Qwen3.5, mixture of experts.
pub(super) fn emit_moe_3_5(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let experts = SharedMoe::read(e)?;
    frame(e, &|e, l, x| experts.emit(e, l, x))
}

/// The model around a feed-forward part.
fn frame(e: &mut ModelBuilder<'_>, feed_forward: SublayerFn<'_>) -> Result<(), ModelError> {
    if e.is_gguf() {
        // There the norm before the feed-forward part has this name.
        e.with_post_norms();
    }
    let h = AttentionHeads::read(e)?;
    let attends = e.config.attending_layers(&["full_attention"], &["linear_attention"])?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    let decoder = Decoder::read(e)?;
    let unit_offset = !e.is_gguf();
    let decoder = Decoder { norm: RmsNorm { unit_offset, ..decoder.norm.clone() }, ..decoder };
    let eps = decoder.norm.eps;
    let delta = if attends.contains(&false) { Some(DeltaNet::read(e, h.hidden)?) } else { None };
    decoder.emit(
        e,
        &|e, l, x| match &delta {
            Some(delta) if !attends[l as usize] => delta.emit(e, l, x),
            _ => attention(e, l, &h, &attend, eps, x),
        },
        feed_forward,
    )
}

/// Attention whose result a gate closes: each head's query and gate lie side by side.
fn attention(
    e: &mut ModelBuilder<'_>,
    l: u32,
    h: &AttentionHeads,
    attend: &LayerAttention,
    eps: F32,
    x: ValueId,
) -> Result<ValueId, ModelError> {
    if e.config.bool_or("attention_bias", false)? && !e.is_gguf() {
        return Err(e.config.invalid("attention_bias", "false"));
    }
    let (hf, width) = (format!("model.layers.{l}.self_attn"), h.width);
    let heads = [h.heads, e.product(2, width, "head_dim")?, h.hidden];
    let q = of_groups(e, &format!("l{l}.q"), &format!("{hf}.q_proj"), heads, [0, width], x)?;
    let gate = of_groups(e, &format!("l{l}.gate"), &format!("{hf}.q_proj"), heads, [width, width], x)?;
    let k = e.linear(&format!("l{l}.k"), &format!("{hf}.k_proj"), x, [h.k(), h.hidden], false)?;
    let v = e.linear(&format!("l{l}.v"), &format!("{hf}.v_proj"), x, [h.v(), h.hidden], false)?;
    let norm = RmsNorm { eps, width, unit_offset: !e.is_gguf() };
    let qkv = h.normalise(e, l, [q, k, v], [&norm, &norm])?;
    let a = attend.emit(e, l, h, qkv)?;
    let a = e.op(&format!("l{l}.attn.gated"), Map::gated(Func::Sigmoid), &[gate, a])?;
    h.output(e, l, a, false)
}
