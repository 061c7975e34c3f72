//! Gemma 3n (Google DeepMind, 2025), its language model: rows of which layers compute one ([`AltUp`]), embeddings for each
//! layer, last layers that read the keys and values of earlier ones, a low-rank way beside attention (LAuReL, Menghani et al.,
//! arXiv 2411.07501), and feed-forward parts of which only the largest gates open.

use super::altup::AltUp;
use super::attention::AttentionHeads;
use super::decoder::Decoder;
use super::emit::ModelBuilder;
use super::ffn::{self, GatedMlp};
use super::key_sharing::KeySharing;
use super::normal_quantile::normal_quantile;
use super::per_layer_embedding::PerLayerEmbedding;
use crate::error::ModelError;
use serde_json::Value;
use yirage_ir::ValueId;
use yirage_ir::attr::List;
use yirage_ir::expr::{Expr, Func};
use yirage_ir::op::{Map, Reduce, ReduceKind, RmsNorm};

/// Where a file does not say which gates open, of more layers than these so many let this share stay closed.
const SPARSE_LAYERS: usize = 10;
const SPARSITY: f64 = 0.95;

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    e.with_post_norms();
    let h = AttentionHeads::read(e)?;
    let mut attention = KeySharing::read(e, &|_, _, _| Ok(h), false)?;
    let decoder = Decoder::read(e)?;
    let norm = decoder.norm.clone();
    let parts = Gemma3n::read(e, norm.clone())?;
    let altup = AltUp::read(e, &norm)?;
    let x = e.embed("model.embed_tokens.weight", h.hidden, f64::from(h.hidden).sqrt() as f32)?;
    let own = PerLayerEmbedding::emit(e, x, &norm, parts.gate)?;
    let own = own.ok_or_else(|| e.config.invalid("hidden_size_per_layer_input", "an integer above 0"))?;
    let mut rows = altup.begin(e, x)?;
    for l in 0..e.config.layers()? {
        let predicted = altup.predict(e, l, rows)?;
        let active = altup.active(e, &format!("l{l}.predicted"), predicted)?;
        let made = parts.layer(e, l, active, &mut attention)?;
        let corrected = altup.correct(e, l, [predicted, active], made)?;
        let gated = altup.gate_input(e, l, corrected)?;
        let added = own.of_layer(e, l, gated)?;
        let added = parts.norm(e, l, "own.norm", "post_per_layer_input_norm", added)?;
        rows = altup.add_behind_first(e, l, corrected, added)?;
    }
    let wanted = altup.end(e, rows)?;
    let wanted = e.rms_norm("norm", "model.norm", wanted, &norm)?;
    let cap = e.positive("final_logit_softcapping", 0.0)? as f32;
    e.logits("lm_head", wanted, h.hidden, (cap > 0.0).then(|| Map::softcap(cap)))
}

/// What is read of the configuration for the row that layers compute.
struct Gemma3n {
    norm: RmsNorm,
    gate: Func,
    /// Of each layer the inner width of its feed-forward part.
    inner: Vec<u32>,
    /// Of each layer by how many deviations a gate exceeds the mean of all before it opens, where not all do.
    opens_from: Vec<Option<f32>>,
    rank: u32,
}

impl Gemma3n {
    fn read(e: &ModelBuilder<'_>, norm: RmsNorm) -> Result<Gemma3n, ModelError> {
        let layers = e.config.layers()?;
        let inner = e.config.u32_per_layer("intermediate_size", layers)?;
        if inner.iter().any(|&n| n == 0 || e.product(n, 2, "intermediate_size").is_err()) {
            return Err(e.config.invalid("intermediate_size", "integers above 0 whose double is a size"));
        }
        Ok(Gemma3n {
            norm,
            gate: ffn::gate(e)?,
            inner,
            opens_from: opens_from(e, layers as usize)?,
            rank: e.size("laurel_rank")?,
        })
    }

    /// What layer `l` makes of its row.
    fn layer(
        &self,
        e: &mut ModelBuilder<'_>,
        l: u32,
        x: ValueId,
        attention: &mut KeySharing,
    ) -> Result<ValueId, ModelError> {
        let n = self.norm(e, l, "attn_norm", "input_layernorm", x)?;
        let beside = self.low_rank(e, l, n)?;
        let a = attention.emit(e, l, n)?;
        let a = self.norm(e, l, "attn_post_norm", "post_attention_layernorm", a)?;
        let attended = e.add(&format!("l{l}.attended"), x, a)?;
        let both = e.add(&format!("l{l}.both"), attended, beside)?;
        let mid = e.scale(&format!("l{l}.mid"), both, std::f32::consts::FRAC_1_SQRT_2)?;
        let n = self.norm(e, l, "ffn_norm", "pre_feedforward_layernorm", mid)?;
        let f = self.feed_forward(e, l, n)?;
        let f = self.norm(e, l, "ffn_post_norm", "post_feedforward_layernorm", f)?;
        e.add(&format!("l{l}.res"), mid, f)
    }

    /// The row and a product of low rank of it.
    fn low_rank(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let (name, hf) = (format!("l{l}.laurel"), format!("model.layers.{l}.laurel"));
        let hidden = self.norm.width;
        let left = e.linear(&format!("{name}.left"), &format!("{hf}.linear_left"), x, [self.rank, hidden], false)?;
        let right =
            e.linear(&format!("{name}.right"), &format!("{hf}.linear_right"), left, [hidden, self.rank], false)?;
        let normed = self.norm(e, l, "laurel.norm", "laurel.post_laurel_norm", right)?;
        e.add(&name, x, normed)
    }

    fn feed_forward(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let (name, hf) = (format!("l{l}.ffn"), format!("model.layers.{l}.mlp"));
        let (inner, hidden) = (self.inner[l as usize], self.norm.width);
        let mut gate = e.linear(&format!("{name}.gate"), &format!("{hf}.gate_proj"), x, [inner, hidden], false)?;
        let up = e.linear(&format!("{name}.up"), &format!("{hf}.up_proj"), x, [inner, hidden], false)?;
        if let Some(deviations) = self.opens_from[l as usize] {
            gate = largest(e, &name, gate, deviations)?;
        }
        GatedMlp { hidden, inner, gate: self.gate, bias: false }.finish(e, &name, &hf, gate, up)
    }

    fn norm(&self, e: &mut ModelBuilder<'_>, l: u32, name: &str, hf: &str, x: ValueId) -> Result<ValueId, ModelError> {
        e.rms_norm(&format!("l{l}.{name}"), &format!("model.layers.{l}.{hf}"), x, &self.norm)
    }
}

/// By how much the elements of a row exceed its mean plus so many of its deviations, and 0 for those that do not.
fn largest(e: &mut ModelBuilder<'_>, name: &str, x: ValueId, deviations: f32) -> Result<ValueId, ModelError> {
    let of_row = |kind| Reduce { kind, axes: List(vec![1]), keep: true };
    let mean = e.op(&format!("{name}.mean"), of_row(ReduceKind::Mean), &[x])?;
    let off = e.op(&format!("{name}.off"), Map::of(Func::Sub), &[x, mean])?;
    let variance = e.op(&format!("{name}.variance"), of_row(ReduceKind::MeanSquare), &[off])?;
    let deviation = Expr::call(Func::Sqrt, &[Expr::input(2)]);
    let above = Expr::call(Func::Mul, &[deviation, Expr::constant(deviations)]);
    let border = Expr::call(Func::Add, &[Expr::input(1), above]);
    let excess = Expr::call(Func::Sub, &[Expr::input(0), border]);
    let expr = Expr::call(Func::Relu, &[excess]);
    e.op(&format!("{name}.opened"), Map { expr }, &[x, mean, variance])
}

/// Of each layer from how many deviations on its gates open; none where all do.
fn opens_from(e: &ModelBuilder<'_>, layers: usize) -> Result<Vec<Option<f32>>, ModelError> {
    const KEY: &str = "activation_sparsity_pattern";
    let wrong = || e.config.invalid(KEY, &format!("a list of {layers} numbers from 0 to below 1"));
    let share = |value: &Value| value.as_f64().filter(|share| (0.0..1.0).contains(share));
    let shares: Vec<f64> = match e.config.get(KEY) {
        Some(Value::Array(list)) if list.len() == layers => {
            list.iter().map(share).collect::<Option<_>>().ok_or_else(wrong)?
        }
        Some(_) => return Err(wrong()),
        None => {
            let sparse = if layers > SPARSE_LAYERS { SPARSE_LAYERS } else { 0 };
            (0..layers).map(|l| if l < sparse { SPARSITY } else { 0.0 }).collect()
        }
    };
    Ok(shares.into_iter().map(|share| (share > 0.0).then(|| normal_quantile(share) as f32)).collect())
}
