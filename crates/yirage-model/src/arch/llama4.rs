//! Llama 4 (Meta, April 2025), its language model: layers that rotate attend within chunks of positions, every fourth does
//! not rotate and attends to everything (NoPE, Yang et al., arXiv 2501.18795). One expert of many is chosen, and reads its
//! input times its score, beside a shared one.
//!
//! Within the first chunk both kinds of layers attend to all that came before, and scores of layers without rotation have
//! no temperature of their own yet. Further positions are not computed.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::experts::{ExpertTensorNames, MoeLayer};
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use yirage_ir::attr::List;
use yirage_ir::expr::Func;
use yirage_ir::op::{Map, Reduce, ReduceKind, RmsNorm, Route, Scoring};
use yirage_ir::{F32, ValueId};

const TENSORS: ExpertTensorNames = ExpertTensorNames::StackedTransposed {
    router: "feed_forward.router",
    gate_up: "feed_forward.experts.gate_up_proj",
    down: "feed_forward.experts.down_proj",
};

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    e.check_positions()?;
    let h = AttentionHeads::read(e)?;
    let bias = e.config.bool_or("attention_bias", false)?;
    let rotation = e.rotation(LayerType::Full, h.width, true)?;
    // 1 = the layer rotates, despite the key's name.
    let rotates = e.config.u32_per_layer("no_rope_layers", e.config.layers()?)?;
    if e.config.has("layer_types") {
        // Both attend to the same within the first chunk.
        e.config.attending_layers(&["full_attention"], &["chunked_attention"])?;
    }
    let normalises = e.config.bool_or("use_qk_norm", true)?;
    let feed_forward = Llama4FeedForward::read(e)?;
    let decoder = Decoder::read(e)?;
    let norm = RmsNorm { width: h.width, ..decoder.norm.clone() };
    decoder.emit(
        e,
        &|e, l, x| {
            let [mut q, mut k, v] = h.project(e, l, x, bias)?;
            if rotates[l as usize] != 0 {
                q = e.rotate(&format!("l{l}.q.rope"), q, h.width, rotation)?;
                k = e.rotate(&format!("l{l}.k.rope"), k, h.width, rotation)?;
                if normalises {
                    q = e.op(&format!("l{l}.q.norm"), norm.clone(), &[q])?;
                    k = e.op(&format!("l{l}.k.norm"), norm.clone(), &[k])?;
                }
            }
            let a = LayerAttention::full(None, h.scale()).emit(e, l, &h, [q, k, v])?;
            h.output(e, l, a, bias)
        },
        &|e, l, x| feed_forward.emit(e, l, x),
    )
}

/// The feed-forward part of every layer.
struct Llama4FeedForward {
    dense: GatedMlp,
    experts: MoeLayer,
    shared: GatedMlp,
    /// Of each layer whether it has experts.
    chooses: Vec<bool>,
}

impl Llama4FeedForward {
    fn read(e: &ModelBuilder<'_>) -> Result<Llama4FeedForward, ModelError> {
        let top_k = e.size("num_experts_per_tok")?;
        if top_k != 1 {
            return Err(ModelError::Unsupported {
                what: format!("{top_k} experts a token"),
                why: format!(
                    "{}: {} says so; every published model of this family chooses 1",
                    e.config.file(),
                    e.config.called("num_experts_per_tok")
                ),
            });
        }
        // By logits: sigmoids of large ones are equal.
        let scoring = Scoring::SoftmaxTopK;
        let route = Route { top_k, scoring, normalize: true, scale: F32(1.0), groups: 1, top_groups: 1 };
        let dense = GatedMlp::read(e, false)?;
        let experts = MoeLayer::read(e, "moe_intermediate_size", route)?;
        let shared = GatedMlp { inner: experts.inner, ..dense };
        let layers = e.config.layers()?;
        let every = match e.config.u32_or("interleave_moe_layer_step", 1)? {
            0 => return Err(e.config.invalid("interleave_moe_layer_step", "an integer above 0")),
            every => every,
        };
        let listed = e.config.opt_u32_list("moe_layers")?;
        let chooses = |l: u32| listed.as_ref().map_or((l + 1).is_multiple_of(every), |list| list.contains(&l));
        Ok(Llama4FeedForward { dense, experts, shared, chooses: (0..layers).map(chooses).collect() })
    }

    fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let hf = format!("model.layers.{l}.feed_forward");
        if !self.chooses[l as usize] {
            return self.dense.emit(e, &format!("l{l}.ffn"), &hf, x);
        }
        let logits = self.experts.logits(e, l, x, &TENSORS)?;
        let [_, chosen] = self.experts.choose(e, l, logits, None)?;
        // The chosen expert's logit is the largest.
        let best = Reduce { kind: ReduceKind::Max, axes: List(vec![1]), keep: true };
        let best = e.op(&format!("l{l}.best"), best, &[logits])?;
        let scored = e.op(&format!("l{l}.scored"), Map::gated(Func::Sigmoid), &[best, x])?;
        let routed = self.experts.results(e, l, scored, &TENSORS, chosen)?;
        let beside = self.shared.emit(e, &format!("l{l}.shared"), &format!("{hf}.shared_expert"), x)?;
        e.add(&format!("l{l}.ffn.sum"), routed, beside)
    }
}
