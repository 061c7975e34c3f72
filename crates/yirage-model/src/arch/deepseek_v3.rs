//! DeepSeek-V3 (arXiv 2412.19437): latent attention (DeepSeek-V2, arXiv 2405.04434) in the absorbed form, in prefill and
//! decode alike, and experts chosen from groups beside shared ones.
//!
//! Absorbed: the cache keeps a compressed row and one rotated key for all heads. Queries are carried into the compressed
//! space by each head's key matrix, and what attention gives back is carried out of it by each head's value matrix, so
//! keys and values are never made.

use super::KvCacheSpec;
use super::decoder::Decoder;
use super::deepseek_moe::{self, DeepseekMoe};
use super::emit::{ModelBuilder, Rotation};
use crate::config::LayerType;
use crate::error::ModelError;
use crate::rope::score_factor;
use yirage_ir::op::{Attention, ConcatHeads, KvAppend, RmsNorm};
use yirage_ir::{F32, ValueId};

/// Epsilon of the norms of compressed rows, which no configuration states.
const LATENT_EPS: f32 = 1e-6;

/// Latent attention.
pub(super) struct Latent {
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
    let latent = Latent::read(e, e.config.bool_or("rope_interleave", true)?)?;
    let moe = DeepseekMoe::read(e, deepseek_moe::sigmoid_route(e)?)?;
    Decoder::read(e)?.emit(e, &|e, l, x| latent.emit(e, l, x), &|e, l, x| moe.emit(e, l, x))
}

impl Latent {
    /// From the usual keys; `interleaved`: whether neighbouring elements rotate.
    pub(super) fn read(e: &mut ModelBuilder<'_>, interleaved: bool) -> Result<Latent, ModelError> {
        let (rope, nope) = (e.size("qk_rope_head_dim")?, e.size("qk_nope_head_dim")?);
        let q_rank = if e.config.has("q_lora_rank") { Some(e.size("q_lora_rank")?) } else { None };
        let extra = score_factor(&e.config.rope(LayerType::Full)?.scaling);
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

    /// Emits layer `l`'s attention.
    pub(super) fn emit(&self, e: &mut ModelBuilder<'_>, l: u32, x: ValueId) -> Result<ValueId, ModelError> {
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
        let apart = format!("blk.{l}.attn_k_b.weight");
        if e.is_gguf() && e.has(&apart) {
            let rows = e.product(self.heads, self.rank, "num_attention_heads times kv_lora_rank")?;
            let view = e.whole(&apart, &[self.heads, self.rank, self.nope])?;
            return e.weight(&format!("l{l}.q_latent.w"), &[rows, self.nope], vec![view]);
        }
        let head = e.product(self.nope + self.v, self.rank, "a head's size")?;
        let (shape, strides) = ([self.heads, self.rank, self.nope], [head, 1, self.rank]);
        let view = e.part(&kv_b(l), &[self.heads * (self.nope + self.v), self.rank], 0, &shape, &strides)?;
        let rows = e.product(self.heads, self.rank, "num_attention_heads times kv_lora_rank")?;
        e.weight(&format!("l{l}.q_latent.w"), &[rows, self.nope], vec![view])
    }

    /// Each head's value matrix: `[heads * v, rank]`.
    fn values(&self, e: &mut ModelBuilder<'_>, l: u32) -> Result<ValueId, ModelError> {
        let apart = format!("blk.{l}.attn_v_b.weight");
        if e.is_gguf() && e.has(&apart) {
            let view = e.whole(&apart, &[self.heads, self.v, self.rank])?;
            return e.weight(&format!("l{l}.value.w"), &[self.heads * self.v, self.rank], vec![view]);
        }
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
