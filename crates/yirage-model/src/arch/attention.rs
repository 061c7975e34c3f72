//! Attention over the cache, as most architectures have it.

use super::KvCacheSpec;
use super::emit::{ModelBuilder, Rotation};
use crate::error::ModelError;
use yirage_ir::op::{Attention, KvAppend, RmsNorm};
use yirage_ir::{F32, ValueId};

/// The sizes of attention.
#[derive(Clone, Copy)]
pub(super) struct AttentionHeads {
    pub(super) hidden: u32,
    pub(super) heads: u32,
    pub(super) kv_heads: u32,
    /// Elements of a query and key head.
    pub(super) width: u32,
    /// Elements of a value head.
    pub(super) v_width: u32,
}

impl AttentionHeads {
    /// From the usual keys.
    pub(super) fn read(e: &ModelBuilder<'_>) -> Result<AttentionHeads, ModelError> {
        let width = e.size("head_dim")?;
        // Only GGUF metadata states the width of values apart for models of this kind.
        let v_width = if e.is_gguf() && e.config.has("v_head_dim") { e.size("v_head_dim")? } else { width };
        let (heads, kv_heads) = (e.size("num_attention_heads")?, e.size("num_key_value_heads")?);
        let h = AttentionHeads { hidden: e.size("hidden_size")?, heads, kv_heads, width, v_width };
        e.product(heads.max(kv_heads), width.max(v_width), "num_attention_heads times head_dim")?;
        Ok(h)
    }

    /// Width of all queries.
    pub(super) fn q(&self) -> u32 {
        self.heads * self.width
    }

    /// Width of all keys.
    pub(super) fn k(&self) -> u32 {
        self.kv_heads * self.width
    }

    /// Width of all values.
    pub(super) fn v(&self) -> u32 {
        self.kv_heads * self.v_width
    }

    /// The usual factor of scores.
    pub(super) fn scale(&self) -> f32 {
        (1.0 / f64::from(self.width).sqrt()) as f32
    }

    /// Queries, keys and values by the layer's three projections, with these biases.
    pub(super) fn project(
        &self,
        e: &mut ModelBuilder<'_>,
        layer: u32,
        x: ValueId,
        bias: bool,
    ) -> Result<[ValueId; 3], ModelError> {
        let mut one = |part: &str, n: u32| {
            let hf = format!("model.layers.{layer}.self_attn.{part}_proj");
            let bias = e.biased(bias, &format!("{hf}.bias"));
            e.linear(&format!("l{layer}.{part}"), &hf, x, [n, self.hidden], bias)
        };
        Ok([one("q", self.q())?, one("k", self.k())?, one("v", self.v())?])
    }

    /// The same from one tensor, whose rows are those of queries, keys and values in this order.
    pub(super) fn project_fused(
        &self,
        e: &mut ModelBuilder<'_>,
        layer: u32,
        x: ValueId,
        bias: bool,
    ) -> Result<[ValueId; 3], ModelError> {
        let fused = format!("model.layers.{layer}.self_attn.qkv_proj");
        let (q, k, v) = (self.q(), self.k(), self.v());
        let bias = e.biased(bias, &format!("{fused}.bias"));
        let mut one = |part: &str, first: u32, n: u32| {
            let w = e.rows_of(&format!("{fused}.weight"), &[q + k + v, self.hidden], first, n)?;
            let b = if bias { Some(e.rows_of(&format!("{fused}.bias"), &[q + k + v], first, n)?) } else { None };
            e.project(&format!("l{layer}.{part}"), x, [n, self.hidden], w, b)
        };
        Ok([one("q", 0, q)?, one("k", q, k)?, one("v", q + k, v)?])
    }

    /// RMS norms of queries and keys: of each head where `norm` has a head's width, else of whole rows.
    pub(super) fn normalise(
        &self,
        e: &mut ModelBuilder<'_>,
        layer: u32,
        [q, k, v]: [ValueId; 3],
        [of_q, of_k]: [&RmsNorm; 2],
    ) -> Result<[ValueId; 3], ModelError> {
        let mut one = |part: &str, x: ValueId, norm: &RmsNorm| {
            let hf = format!("model.layers.{layer}.self_attn.{part}_norm");
            e.rms_norm(&format!("l{layer}.{part}.norm"), &hf, x, norm)
        };
        Ok([one("q", q, of_q)?, one("k", k, of_k)?, v])
    }

    /// Attention of a step's tokens to all of their sequence, or to those in a window to both sides; nothing is cached.
    pub(super) fn attend_both_ways(
        &self,
        e: &mut ModelBuilder<'_>,
        name: &str,
        qkv: [ValueId; 3],
        window: Option<u32>,
    ) -> Result<ValueId, ModelError> {
        let op = Attention {
            heads: self.heads,
            kv_heads: self.kv_heads,
            k_width: self.width,
            v_width: self.v_width,
            scale: F32(self.scale()),
            softcap: F32(0.0),
            window: window.unwrap_or(0),
            causal: false,
            cached: false,
            v_in_k: false,
        };
        let [q, k, v] = qkv;
        e.op(name, op, &[q, k, v, e.inputs.positions, e.inputs.seqs])
    }

    /// The output projection.
    pub(super) fn output(
        &self,
        e: &mut ModelBuilder<'_>,
        layer: u32,
        x: ValueId,
        bias: bool,
    ) -> Result<ValueId, ModelError> {
        let hf = format!("model.layers.{layer}.self_attn.o_proj");
        let bias = e.biased(bias, &format!("{hf}.bias"));
        e.linear(&format!("l{layer}.o"), &hf, x, [self.hidden, self.heads * self.v_width], bias)
    }
}

/// A layer's cache with the step's keys and values, and the table of its blocks.
#[derive(Clone, Copy)]
pub(super) struct KeptKeys {
    kv: ValueId,
    table: ValueId,
}

/// How a layer attends.
#[derive(Clone, Copy)]
pub(super) struct LayerAttention {
    pub(super) rotation: Option<Rotation>,
    /// That of queries, where it is another.
    pub(super) of_queries: Option<Rotation>,
    pub(super) scale: f32,
    /// 0 is none.
    pub(super) softcap: f32,
    pub(super) window: Option<u32>,
    pub(super) sinks: Option<ValueId>,
}

impl LayerAttention {
    /// Causal attention to everything.
    pub(super) fn full(rotation: Option<Rotation>, scale: f32) -> LayerAttention {
        LayerAttention { rotation, of_queries: None, scale, softcap: 0.0, window: None, sinks: None }
    }

    /// The same with a window.
    pub(super) fn within(self, window: Option<u32>) -> LayerAttention {
        LayerAttention { window, ..self }
    }

    /// Rotates, appends to the cache and attends; the result holds one value head a query head.
    ///
    /// Where elements are cached in blocks, queries and keys are multiplied by Hadamard matrices before, which leaves
    /// their scores: a key's element that is far larger than its neighbours would leave them few of a block's codes.
    /// Values stay: in Qwen2.5, where keys lose most, the divergence by values is less than a hundredth of that by keys.
    pub(super) fn emit(
        &self,
        e: &mut ModelBuilder<'_>,
        layer: u32,
        h: &AttentionHeads,
        [q, k, v]: [ValueId; 3],
    ) -> Result<ValueId, ModelError> {
        let q = self.query(e, layer, h, q)?;
        let kept = self.keep(e, layer, h, [k, v])?;
        self.attend(e, layer, h, q, kept)
    }

    /// Queries as they meet cached keys.
    pub(super) fn query(
        &self,
        e: &mut ModelBuilder<'_>,
        layer: u32,
        h: &AttentionHeads,
        q: ValueId,
    ) -> Result<ValueId, ModelError> {
        let rotation = self.rotation.map(|of_keys| self.of_queries.unwrap_or(of_keys));
        placed(e, &format!("l{layer}.q"), h, q, rotation)
    }

    /// Appends keys and values to the layer's cache.
    pub(super) fn keep(
        &self,
        e: &mut ModelBuilder<'_>,
        layer: u32,
        h: &AttentionHeads,
        [k, v]: [ValueId; 2],
    ) -> Result<KeptKeys, ModelError> {
        let k = placed(e, &format!("l{layer}.k"), h, k, self.rotation)?;
        let (kv_heads, k_width, v_width) = (h.kv_heads, h.width, h.v_width);
        let group = KvCacheSpec::Paged { kv_heads, k_width, v_width, window: self.window };
        let [state, slots, table] = e.kv_cache(layer, group)?;
        let kv = e.op(&format!("l{layer}.kv"), KvAppend { kv_heads }, &[state, k, v, slots])?;
        Ok(KeptKeys { kv, table })
    }

    /// Attends to what is kept, by the layer itself or by an earlier one of the same heads.
    pub(super) fn attend(
        &self,
        e: &mut ModelBuilder<'_>,
        layer: u32,
        h: &AttentionHeads,
        q: ValueId,
        kept: KeptKeys,
    ) -> Result<ValueId, ModelError> {
        let op = Attention {
            heads: h.heads,
            kv_heads: h.kv_heads,
            k_width: h.width,
            v_width: h.v_width,
            scale: F32(self.scale),
            softcap: F32(self.softcap),
            window: self.window.unwrap_or(0),
            causal: true,
            cached: true,
            v_in_k: false,
        };
        let mut ins = vec![q, kept.kv, e.inputs.positions, e.inputs.seqs, kept.table];
        ins.extend(self.sinks);
        e.op(&format!("l{layer}.attn"), op, &ins)
    }
}

/// Heads rotated by their positions, and spread where elements are cached in blocks.
fn placed(
    e: &mut ModelBuilder<'_>,
    name: &str,
    h: &AttentionHeads,
    mut x: ValueId,
    rotation: Option<Rotation>,
) -> Result<ValueId, ModelError> {
    if let Some(rotation) = rotation {
        x = e.rotate(&format!("{name}.rope"), x, h.width, rotation)?;
    }
    if e.caches_blocks() {
        x = e.spread(&format!("{name}.spread"), x, h.width)?;
    }
    Ok(x)
}
