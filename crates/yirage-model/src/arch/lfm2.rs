//! LFM2 (Liquid AI, 2025): gated short convolutions in most layers, grouped heads with norms of each in the others, and in
//! LFM2-8B-A1B experts by corrected sigmoids in all layers but the first.

use super::attention::{AttentionHeads, LayerAttention};
use super::emit::{LARGEST, ModelBuilder};
use super::experts::{ExpertTensorNames, MoeLayer};
use super::short_conv::CausalConv;
use crate::config::LayerType;
use crate::error::ModelError;

use yirage_ir::expr::Func;
use yirage_ir::op::{Map, RmsNorm, Route, Scoring};
use yirage_ir::{F32, ValueId};

/// What files call the tensors of experts.
const NAMES: ExpertTensorNames = ExpertTensorNames::Separate {
    router: "feed_forward.gate",
    experts: "feed_forward.experts",
    parts: ["w1", "w3", "w2"],
};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    let (hidden, inner) = (e.size("hidden_size")?, inner_size(e)?);
    emit_layers(e, &|e, l, x| feed_forward(e, l, [hidden, inner], x))
}

pub(super) fn emit_moe(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    let (hidden, inner) = (e.size("hidden_size")?, e.size("intermediate_size")?);
    let route = Route {
        top_k: e.size("num_experts_per_tok")?,
        scoring: Scoring::Sigmoid,
        normalize: e.config.bool_or("norm_topk_prob", true)?,
        scale: F32(e.config.f64_or("routed_scaling_factor", 1.0)? as f32),
        groups: 1,
        top_groups: 1,
    };
    let (count, of_expert) = (e.size("num_experts")?, e.size("moe_intermediate_size")?);
    let experts = MoeLayer { hidden, inner: of_expert, count, gate: Func::Silu, route };
    let (dense, corrected) = (e.config.u32("num_dense_layers")?, e.config.bool_or("use_expert_bias", true)?);
    emit_layers(e, &|e, l, x| {
        if l < dense {
            return feed_forward(e, l, [hidden, inner], x);
        }
        let hf = format!("model.layers.{l}.feed_forward.expert_bias");
        let correction = corrected.then(|| e.tensor(&format!("l{l}.correction"), &hf, &[count])).transpose()?;
        experts.emit(e, l, x, &NAMES, correction)
    })
}

/// Emits the feed-forward part of a layer.
type FeedForward<'f> = &'f dyn Fn(&mut ModelBuilder<'_>, u32, ValueId) -> Result<ValueId, ModelError>;

fn emit_layers(e: &mut ModelBuilder<'_>, ffn: FeedForward<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let h = AttentionHeads::read(e)?;
    let eps = F32(e.eps("norm_eps")?);
    let norm = RmsNorm { eps, width: h.hidden, unit_offset: false };
    let conv = GatedConv::read(e, h.hidden)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let attend = LayerAttention::full(Some(rotation), h.scale());
    let mut x = e.embed("model.embed_tokens.weight", h.hidden, 1.0)?;
    for (l, attends) in (0..).zip(e.config.attending_layers(&["full_attention"], &["conv"])?) {
        let hf = format!("model.layers.{l}");
        let n = e.rms_norm(&format!("l{l}.attn_norm"), &format!("{hf}.operator_norm"), x, &norm)?;
        let a = if attends { attention(e, l, &h, &attend, eps, n)? } else { conv.emit(e, l, n)? };
        x = e.add(&format!("l{l}.mid"), x, a)?;
        let n = e.rms_norm(&format!("l{l}.ffn_norm"), &format!("{hf}.ffn_norm"), x, &norm)?;
        let f = ffn(e, l, n)?;
        x = e.add(&format!("l{l}.res"), x, f)?;
    }
    let x = e.wanted(x)?;
    let x = e.rms_norm("norm", "model.embedding_norm", x, &norm)?;
    e.logits("lm_head", x, h.hidden, None)
}

/// Width of the feed-forward part: two thirds of what the configuration says, times a factor, in whole pieces, unless it
/// says that it is meant as it stands.
fn inner_size(e: &ModelBuilder<'_>) -> Result<u32, ModelError> {
    let stated = e.size("intermediate_size")?;
    if !e.config.bool_or("block_auto_adjust_ff_dim", true)? {
        return Ok(stated);
    }
    let (factor, pieces) = (e.positive("block_ffn_dim_multiplier", 1.0)?, e.size("block_multiple_of")?);
    let wanted = (factor * (2.0 * f64::from(stated) / 3.0).trunc()).trunc();
    let whole = (wanted / f64::from(pieces)).ceil() * f64::from(pieces);
    if (1.0..=f64::from(LARGEST)).contains(&whole) {
        return Ok(whole as u32);
    }
    Err(e.config.invalid("block_ffn_dim_multiplier", &format!("a factor that makes 1 to {LARGEST} of {stated}")))
}

fn attention(
    e: &mut ModelBuilder<'_>,
    l: u32,
    h: &AttentionHeads,
    attend: &LayerAttention,
    eps: F32,
    x: ValueId,
) -> Result<ValueId, ModelError> {
    let hf = format!("model.layers.{l}.self_attn");
    let norm = RmsNorm { eps, width: h.width, unit_offset: false };
    let [q, k, v] = h.project(e, l, x, false)?;
    let q = e.rms_norm(&format!("l{l}.q.norm"), &format!("{hf}.q_layernorm"), q, &norm)?;
    let k = e.rms_norm(&format!("l{l}.k.norm"), &format!("{hf}.k_layernorm"), k, &norm)?;
    let a = attend.emit(e, l, h, [q, k, v])?;
    e.linear(&format!("l{l}.o"), &format!("{hf}.out_proj"), a, [h.hidden, h.heads * h.v_width], false)
}

fn feed_forward(
    e: &mut ModelBuilder<'_>,
    l: u32,
    [hidden, inner]: [u32; 2],
    x: ValueId,
) -> Result<ValueId, ModelError> {
    let hf = format!("model.layers.{l}.feed_forward");
    let gate = e.linear(&format!("l{l}.ffn.gate"), &format!("{hf}.w1"), x, [inner, hidden], false)?;
    let up = e.linear(&format!("l{l}.ffn.up"), &format!("{hf}.w3"), x, [inner, hidden], false)?;
    let act = e.op(&format!("l{l}.ffn.act"), Map::gated(Func::Silu), &[gate, up])?;
    e.linear(&format!("l{l}.ffn.down"), &format!("{hf}.w2"), act, [hidden, inner], false)
}

/// A convolution between two gates.
struct GatedConv {
    hidden: u32,
    conv: CausalConv,
}

impl GatedConv {
    fn read(e: &ModelBuilder<'_>, hidden: u32) -> Result<GatedConv, ModelError> {
        e.product(3, hidden, "three times hidden_size")?;
        let conv = CausalConv::read(e, "conv_L_cache", hidden, e.config.bool_or("conv_bias", false)?)?;
        Ok(GatedConv { hidden, conv })
    }

    fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let (hf, hidden) = (format!("model.layers.{l}.conv"), self.hidden);
        let mut part = |part: &str, number: u32| {
            let (whole, first) = ([3 * hidden, hidden], number * hidden);
            let w = e.rows_of(&format!("{hf}.in_proj.weight"), &whole, first, hidden)?;
            let b = self.conv.bias.then(|| e.rows_of(&format!("{hf}.in_proj.bias"), &whole[..1], first, hidden));
            e.project(&format!("l{l}.conv.{part}"), x, [hidden, hidden], w, b.transpose()?)
        };
        let [before, after, x] = [part("before", 0)?, part("after", 1)?, part("x", 2)?];
        let gated = e.op(&format!("l{l}.conv.gated"), Map::of(Func::Mul), &[before, x])?;
        let y = self.conv.emit(e, &format!("l{l}.conv"), &format!("{l}"), &format!("{hf}.conv"), gated)?;
        let y = e.op(&format!("l{l}.conv.out"), Map::of(Func::Mul), &[after, y])?;
        e.linear(&format!("l{l}.conv.o"), &format!("{hf}.out_proj"), y, [hidden, hidden], self.conv.bias)
    }
}
