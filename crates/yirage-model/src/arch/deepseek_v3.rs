//! DeepSeek-V3 (arXiv 2412.19437): latent attention (DeepSeek-V2, arXiv 2405.04434) in the absorbed form, in prefill and
//! decode alike, and experts chosen from groups beside shared ones.
//!
//! Absorbed: the cache keeps a compressed row and one rotated key for all heads. Queries are carried into the compressed
//! space by each head's key matrix, and what attention gives back is carried out of it by each head's value matrix, so
//! keys and values are never made.

use super::KvCacheSpec;
use super::decoder::Decoder;
use super::emit::{ModelBuilder, Rotation};
use super::experts::{ExpertTensorNames, MoeLayer};
use super::ffn::GatedMlp;
use crate::config::LayerType;
use crate::error::ModelError;
use crate::rope::score_factor;
use yirage_ir::op::{Attention, ConcatHeads, KvAppend, RmsNorm, Route, Scoring};
use yirage_ir::{F32, ValueId};

/// Epsilon of the norms of compressed rows, which no configuration states.
const LATENT_EPS: f32 = 1e-6;

struct Latent {
    hidden: u32,
    heads: u32,
    /// Width of the compressed queries, if they are compressed.
    q_rank: Option<u32>,
    rank: u32,
    rope: u32,
    nope: u32,
    v: u32,
    scale: f32,
    bias: bool,
    rotation: Rotation,
}

pub(super) fn emit(e: &mut ModelBuilder<'_>) -> Result<(), ModelError> {
    e.plain_storage()?;
    let latent = Latent::read(e)?;
    let mlp = GatedMlp::read(e, false)?;
    let experts = MoeLayer::read(e, "moe_intermediate_size", route(e)?)?;
    let dense = e.config.u32_or("first_k_dense_replace", 0)?;
    let shared = match e.config.u32_or("n_shared_experts", 0)? {
        0 => None,
        n => Some(GatedMlp { inner: e.product(n, experts.inner, "n_shared_experts")?, ..mlp }),
    };
    let names =
        ExpertTensorNames { router: "mlp.gate", experts: "mlp.experts", parts: ["gate_proj", "up_proj", "down_proj"] };
    Decoder::read(e)?.emit(e, &|e, l, x| latent.emit(e, l, x), &|e, l, x| {
        if l < dense {
            return mlp.emit_layer(e, l, x);
        }
        let correction = format!("model.layers.{l}.mlp.gate.e_score_correction_bias");
        let correction = e.tensor(&format!("l{l}.correction"), &correction, &[experts.count])?;
        let routed = experts.emit(e, l, x, &names, Some(correction))?;
        let Some(shared) = &shared else { return Ok(routed) };
        let hf = format!("model.layers.{l}.mlp.shared_experts");
        let beside = shared.emit(e, &format!("l{l}.shared"), &hf, x)?;
        e.add(&format!("l{l}.ffn.sum"), routed, beside)
    })
}

fn route(e: &ModelBuilder<'_>) -> Result<Route, ModelError> {
    Ok(Route {
        top_k: e.size("num_experts_per_tok")?,
        scoring: Scoring::Sigmoid,
        normalize: e.config.bool_or("norm_topk_prob", true)?,
        scale: F32(e.config.f64_or("routed_scaling_factor", 1.0)? as f32),
        groups: e.size("n_group")?,
        top_groups: e.size("topk_group")?,
    })
}

impl Latent {
    fn read(e: &mut ModelBuilder<'_>) -> Result<Latent, ModelError> {
        let (rope, nope) = (e.size("qk_rope_head_dim")?, e.size("qk_nope_head_dim")?);
        let q_rank = if e.config.has("q_lora_rank") { Some(e.size("q_lora_rank")?) } else { None };
        let extra = score_factor(&e.config.rope(LayerType::Full)?.scaling);
        let interleaved = e.config.bool_or("rope_interleave", true)?;
        let latent = Latent {
            hidden: e.size("hidden_size")?,
            heads: e.size("num_attention_heads")?,
            q_rank,
            rank: e.size("kv_lora_rank")?,
            rope,
            nope,
            v: e.size("v_head_dim")?,
            scale: (extra / f64::from(rope + nope).sqrt()) as f32,
            bias: e.config.bool_or("attention_bias", false)?,
            rotation: e.rotation(LayerType::Full, rope, interleaved)?,
        };
        // Keys and values are made for each head: the reference code has no groups of heads here.
        if e.config.u32_or("num_key_value_heads", latent.heads)? != latent.heads {
            return Err(e.config.invalid("num_key_value_heads", "as many as num_attention_heads"));
        }
        let widest = (rope + nope).max(latent.rank + rope).max(nope + latent.v);
        e.product(latent.heads, widest, "num_attention_heads times a head's width")?;
        Ok(latent)
    }

    fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let query = self.query(e, l, x)?;
        let key = self.key(e, l, x)?;
        let [state, slots, table] = e.kv_cache(l, KvCacheSpec::Latent { rank: self.rank, rope: self.rope })?;
        let kv = e.op(&format!("l{l}.kv"), KvAppend { kv_heads: 1 }, &[state, key, slots])?;
        let op = Attention {
            heads: self.heads,
            kv_heads: 1,
            k_width: self.rank + self.rope,
            v_width: self.rank,
            scale: F32(self.scale),
            softcap: F32(0.0),
            window: 0,
            causal: true,
            cached: true,
            v_in_k: true,
        };
        let a = e.op(&format!("l{l}.attn"), op, &[query, kv, e.inputs.positions, e.inputs.seqs, table])?;
        let values = self.values(e, l)?;
        let a = e.matmul(&format!("l{l}.value"), a, values, self.heads)?;
        let hf = format!("model.layers.{l}.self_attn.o_proj");
        e.linear(&format!("l{l}.o"), &hf, a, [self.hidden, self.heads * self.v], self.bias)
    }

    /// Queries in the compressed space, each followed by its rotated part.
    fn query(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let hf = format!("model.layers.{l}.self_attn");
        let (from, source, k) = match self.q_rank {
            None => (x, format!("{hf}.q_proj.weight"), self.hidden),
            Some(rank) => {
                let a = e.linear(&format!("l{l}.q_a"), &format!("{hf}.q_a_proj"), x, [rank, self.hidden], self.bias)?;
                let norm = latent_norm(rank);
                let a = e.rms_norm(&format!("l{l}.q_a.norm"), &format!("{hf}.q_a_layernorm"), a, &norm)?;
                (a, format!("{hf}.q_b_proj.weight"), rank)
            }
        };
        let (heads, whole) = (self.heads, self.nope + self.rope);
        let mut part = |name: &str, first: u32, n: u32| {
            let (of, strides) = ([heads * whole, k], [e.product(whole, k, "a head's size")?, k, 1]);
            let w = e.part(&source, &of, e.product(first, k, "a head's size")?, &[heads, n, k], &strides)?;
            e.project(&format!("l{l}.{name}"), from, [heads * n, k], w, None)
        };
        let (nope, rope) = (part("q_nope", 0, self.nope)?, part("q_rope", self.nope, self.rope)?);
        let rope = e.rotate(&format!("l{l}.q_rope.turned"), rope, self.rope, self.rotation)?;
        let keys = self.keys(e, l)?;
        let latent = e.matmul(&format!("l{l}.q_latent"), nope, keys, heads)?;
        e.op(&format!("l{l}.q"), ConcatHeads { groups: heads }, &[latent, rope])
    }

    /// The compressed row and the rotated key that all heads share.
    fn key(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
        let hf = format!("model.layers.{l}.self_attn");
        let all = self.rank + self.rope;
        let mut part = |name: &str, first: u32, n: u32| {
            let source = format!("{hf}.kv_a_proj_with_mqa");
            let w = e.rows_of(&format!("{source}.weight"), &[all, self.hidden], first, n)?;
            let b = if self.bias { Some(e.rows_of(&format!("{source}.bias"), &[all], first, n)?) } else { None };
            e.project(&format!("l{l}.{name}"), x, [n, self.hidden], w, b)
        };
        let (row, rope) = (part("latent", 0, self.rank)?, part("k_rope", self.rank, self.rope)?);
        let norm = latent_norm(self.rank);
        let row = e.rms_norm(&format!("l{l}.latent.norm"), &format!("{hf}.kv_a_layernorm"), row, &norm)?;
        let rope = e.rotate(&format!("l{l}.k_rope.turned"), rope, self.rope, self.rotation)?;
        e.op(&format!("l{l}.k"), ConcatHeads { groups: 1 }, &[row, rope])
    }

    /// Each head's key matrix, transposed: `[heads * rank, nope]`.
    fn keys(&self, e: &mut ModelBuilder<'_>, l: u32) -> Result<ValueId, ModelError> {
        let head = e.product(self.nope + self.v, self.rank, "a head's size")?;
        let (shape, strides) = ([self.heads, self.rank, self.nope], [head, 1, self.rank]);
        let view = e.part(&kv_b(l), &[self.heads * (self.nope + self.v), self.rank], 0, &shape, &strides)?;
        let rows = e.product(self.heads, self.rank, "num_attention_heads times kv_lora_rank")?;
        e.weight(&format!("l{l}.q_latent.w"), &[rows, self.nope], vec![view])
    }

    /// Each head's value matrix: `[heads * v, rank]`.
    fn values(&self, e: &mut ModelBuilder<'_>, l: u32) -> Result<ValueId, ModelError> {
        let head = e.product(self.nope + self.v, self.rank, "a head's size")?;
        let (shape, strides) = ([self.heads, self.v, self.rank], [head, self.rank, 1]);
        let first = e.product(self.nope, self.rank, "a head's size")?;
        let view = e.part(&kv_b(l), &[self.heads * (self.nope + self.v), self.rank], first, &shape, &strides)?;
        e.weight(&format!("l{l}.value.w"), &[self.heads * self.v, self.rank], vec![view])
    }
}

fn kv_b(l: u32) -> String {
    format!("model.layers.{l}.self_attn.kv_b_proj.weight")
}

fn latent_norm(width: u32) -> RmsNorm {
    RmsNorm { eps: F32(LATENT_EPS), width, unit_offset: false }
}
