//! gpt-oss (OpenAI, arXiv 2508.10925): a sink in every head's softmax, windows in every other layer, experts with biases
//! and a clamped gate, biases everywhere.
//!
//! Experts are read from GGUF tensors, from MXFP4 safetensors (`*_blocks`, `*_scales`), and from plain ones, where gate
//! and up alternate.

use super::attention::{AttentionHeads, LayerAttention};
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use crate::config::{LayerType, Quantization};
use crate::error::ModelError;
use crate::tensor_names;
use crate::weights::WeightSource;
use yirage_ir::op::{ExpertBias, ExpertLinear, ExpertSum, Map, Route, Scoring};
use yirage_ir::{F32, Format, ValueId};

struct GptOssMoe {
    hidden: u32,
    inner: u32,
    count: u32,
    top_k: u32,
    packed: bool,
}

/// One of an expert's matrices: `n` rows of `k`; of the fused tensor's rows every `step`-th from `first` on.
#[derive(Clone, Copy)]
struct ExpertMatrix {
    label: &'static str,
    fused: &'static str,
    n: u32,
    k: u32,
    first: u32,
    step: u32,
}

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    check_gate(e)?;
    let h = AttentionHeads::read(e)?;
    if e.is_gguf() {
        e.with_post_norms();
    }
    let inner = if e.config.has("moe_intermediate_size") { "moe_intermediate_size" } else { "intermediate_size" };
    let experts = GptOssMoe {
        hidden: h.hidden,
        inner: e.size(inner)?,
        count: e.size("num_experts")?,
        top_k: e.size("num_experts_per_tok")?,
        packed: e.config.quantization()? == Quantization::Mxfp4,
    };
    let bias = e.config.bool_or("attention_bias", true)?;
    let rotation = e.rotation(LayerType::Full, h.width, false)?;
    let windows = e.config.windows()?;
    Decoder::read(e)?.emit(
        e,
        &|e, l, x| {
            let qkv = h.project(e, l, x, bias)?;
            let sinks = format!("model.layers.{l}.self_attn.sinks");
            let sinks = Some(e.tensor(&format!("l{l}.sinks"), &sinks, &[h.heads])?);
            let attend =
                LayerAttention { sinks, ..LayerAttention::full(Some(rotation), h.scale()).within(windows[l as usize]) };
            let a = attend.emit(e, l, &h, qkv)?;
            h.output(e, l, a, bias)
        },
        &|e, l, x| experts.emit(e, l, x),
    )
}

/// The op's constants are those of all published models.
fn check_gate(e: &ModelBuilder<'_>) -> Result<(), ModelError> {
    for (key, only) in [("swiglu_limit", 7.0), ("swiglu_alpha", 1.702)] {
        let found = e.config.f64_or(key, only)?;
        if (found - only).abs() > 1e-6 {
            return Err(ModelError::Unsupported {
                what: format!("a gate with {key} = {found}"),
                why: format!("{}: only {only} is known", e.config.file()),
            });
        }
    }
    Ok(())
}

impl GptOssMoe {
    fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let (top_k, router) = (self.top_k, format!("model.layers.{l}.mlp.router"));
        let logits = e.linear(&format!("l{l}.router"), &router, x, [self.count, self.hidden], true)?;
        let scoring = Scoring::SoftmaxTopK;
        let route = Route { top_k, scoring, normalize: true, scale: F32(1.0), groups: 1, top_groups: 1 };
        let chosen = e.ops(&[&format!("l{l}.chances"), &format!("l{l}.chosen")], route, &[logits])?;
        let (hidden, inner) = (self.hidden, self.inner);
        let half = |label, first| ExpertMatrix { label, fused: "gate_up_proj", n: inner, k: hidden, first, step: 2 };
        let gate = self.expert(e, l, x, chosen[1], half("gate", 0))?;
        let up = self.expert(e, l, x, chosen[1], half("up", 1))?;
        let act = e.op(&format!("l{l}.ffn.act"), Map::clipped_gate(), &[gate, up])?;
        let down = ExpertMatrix { label: "down", fused: "down_proj", n: hidden, k: inner, first: 0, step: 1 };
        let down = self.expert(e, l, act, chosen[1], down)?;
        e.op(&format!("l{l}.ffn"), ExpertSum { top_k }, &[down, chosen[0]])
    }

    fn expert(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        x: ValueId,
        chosen: ValueId,
        m: ExpertMatrix,
    ) -> Result<ValueId, ModelError> {
        let name = format!("l{l}.ffn.{}", m.label);
        let (w, b) = (self.weight(e, l, &name, m)?, self.bias(e, l, &name, m)?);
        let op = ExpertLinear { top_k: self.top_k, shared: m.label != "down" };
        let product = e.op(&format!("{name}.product"), op, &[x, w, chosen])?;
        e.op(&name, ExpertBias { top_k: self.top_k }, &[product, b, chosen])
    }

    fn weight(&self, e: &mut ModelBuilder<'_>, l: u32, name: &str, m: ExpertMatrix) -> Result<ValueId, ModelError> {
        let (name, shape) = (format!("{name}.w"), [self.count, m.n, m.k]);
        if e.is_gguf() {
            return e.tensor(&name, &tensor_names::stacked_experts(l, m.label, "weight"), &shape);
        }
        let hf = format!("model.layers.{l}.mlp.experts.{}", m.fused);
        let rows = m.n * m.step;
        if !self.packed {
            let strides = [e.product(rows, m.k, "an expert's size")?, m.step, rows];
            let view = e.part(&hf, &[self.count, m.k, rows], m.first, &shape, &strides)?;
            return e.weight(&name, &shape, vec![view]);
        }
        let bytes = |suffix: &str, per_block: &[u32]| {
            let (blocks, size) = (m.k / 32, per_block.iter().product::<u32>());
            let of = [&[self.count, rows, blocks], per_block].concat();
            let row = blocks * size;
            let strides = [e.product(rows, row, "an expert's size")?, m.step * row, 1];
            e.part(&format!("{hf}_{suffix}"), &of, m.first * row, &[self.count, m.n, row], &strides)
        };
        let source = WeightSource::PackedMxfp4 { blocks: bytes("blocks", &[16])?, scales: bytes("scales", &[])? };
        e.bind(&name, Format::MXFP4, &shape, source)
    }

    fn bias(&self, e: &mut ModelBuilder<'_>, l: u32, name: &str, m: ExpertMatrix) -> Result<ValueId, ModelError> {
        let (name, shape) = (format!("{name}.b"), [self.count, m.n]);
        if e.is_gguf() {
            return e.tensor(&name, &tensor_names::stacked_experts(l, m.label, "bias"), &shape);
        }
        let (hf, rows) = (format!("model.layers.{l}.mlp.experts.{}_bias", m.fused), m.n * m.step);
        let view = e.part(&hf, &[self.count, rows], m.first, &shape, &[rows, m.step])?;
        e.weight(&name, &shape, vec![view])
    }
}
