//! Attention over the cache: `attention_layer`, `single_batch_extend_attention_layer`, `paged_attention_layer`.
//!
//! All three are one op here: a step may have any number of tokens of any number of requests, and the cache has pages.

use crate::builder::KernelBuilder;
use crate::elements::KernelDType;
use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::tensor::TensorId;
use yirage_engine::limits::BLOCK;
use yirage_ir::op::{Attention, KvAppend, RmsNorm, Rope};
use yirage_ir::{DType, F32, Format, Type, ValueId};
use yirage_model::arch::KvCacheSpec;

/// What an attention layer reads beside its input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AttentionInputs {
    /// Keys: `[pages, page_size, heads, width]`, or `[requests, positions, heads, width]`.
    pub k_cache: TensorId,
    /// Values, of the same sizes.
    pub v_cache: TensorId,
    /// Weight of the norm of each query head; none has no norm.
    pub q_norm: Option<TensorId>,
    /// Weight of the norm of each key head.
    pub k_norm: Option<TensorId>,
    /// Cosines of the rotary embedding by position: `[positions, width]` with both halves alike, or `[positions, width / 2]`.
    pub cos_pos_embed: Option<TensorId>,
    /// Sines, of the same sizes.
    pub sin_pos_embed: Option<TensorId>,
}

#[derive(Debug)]
struct AttentionLayer {
    method: &'static str,
    inputs: AttentionInputs,
    heads: u32,
    kv_heads: u32,
    width: u32,
    format: Format,
}

impl KernelBuilder {
    /// Norms, rotation, appending to the cache and causal attention with grouped heads. `input` is `[rows, (heads + 2 *
    /// kv_heads) * width]`: the results of the fused weights of queries, keys and values, or a tensor in which each key
    /// head's queries, its key and its value stand together. `output` is `[rows, heads * width]`.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit, [`PersistentError::Unsupported`] for a cache of another type.
    pub fn attention_layer(
        &mut self,
        input: TensorId,
        inputs: AttentionInputs,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.attend("attention_layer", input, inputs, output, launch)
    }

    /// [`KernelBuilder::attention_layer`] for several new tokens of one request.
    ///
    /// # Errors
    /// As [`KernelBuilder::attention_layer`].
    pub fn single_batch_extend_attention_layer(
        &mut self,
        input: TensorId,
        inputs: AttentionInputs,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.attend("single_batch_extend_attention_layer", input, inputs, output, launch)
    }

    /// [`KernelBuilder::attention_layer`] over a cache of pages.
    ///
    /// # Errors
    /// As [`KernelBuilder::attention_layer`].
    pub fn paged_attention_layer(
        &mut self,
        input: TensorId,
        inputs: AttentionInputs,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.attend("paged_attention_layer", input, inputs, output, launch)
    }

    fn attend(
        &mut self,
        method: &'static str,
        input: TensorId,
        inputs: AttentionInputs,
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let wrong = |why| Err(PersistentError::Layer { layer: method, why });
        let (k, v) = (self.of(inputs.k_cache)?, self.of(inputs.v_cache)?);
        let ([.., kv_heads, width], true) = (&k.tensor.dims[..], k.tensor.dims.len() == 4) else {
            return wrong(format!("`{}` is {:?}, [pages, page_size, heads, width] is wanted", k.name, k.tensor.dims));
        };
        let (kv_heads, width) = (*kv_heads, *width);
        if k.tensor.dims != v.tensor.dims || k.tensor.elements != v.tensor.elements || k.name == v.name {
            let (k, v) = ((&k.name, &k.tensor.dims), (&v.name, &v.tensor.dims));
            return wrong(format!("the caches are {k:?} and {v:?}: two of one size and type are wanted"));
        }
        let KernelDType::Floats(format) = k.tensor.elements else {
            return wrong(format!("`{}` is {}, a cache of floats is wanted", k.name, k.tensor.elements));
        };
        let all = self.width(output)?;
        let heads = all / width.max(1);
        let fits = heads > 0 && heads.is_multiple_of(kv_heads) && all.is_multiple_of(width);
        let wanted = kv_heads.checked_mul(2).and_then(|n| n.checked_add(heads)).and_then(|n| n.checked_mul(width));
        let given = self.width(input)?;
        if !fits || wanted != Some(given) {
            return wrong(format!(
                "an input of {given} and an output of {all} are not those of {kv_heads} key heads of {width}: whole \
                 groups of query heads, then a key and a value each, are wanted"
            ));
        }
        if inputs.cos_pos_embed.is_some() != inputs.sin_pos_embed.is_some() {
            return wrong("cosines or sines alone are given, both or none are wanted".into());
        }
        if inputs.q_norm.is_some() != inputs.k_norm.is_some() {
            return wrong("one of q_norm and k_norm is given, both or none are wanted".into());
        }
        self.take_cache(method, &[inputs.k_cache, inputs.v_cache])?;
        self.record(AttentionLayer { method, inputs, heads, kv_heads, width, format }, launch, &[input], &[output])
    }
}

impl AttentionLayer {
    fn normed(
        &self,
        e: &mut LayerEmitter<'_>,
        x: ValueId,
        weight: Option<TensorId>,
    ) -> Result<ValueId, PersistentError> {
        let Some(weight) = weight else { return Ok(x) };
        let w = e.vector(weight)?;
        let eps = F32(e.declared.config.rms_norm_eps);
        e.op("norm", RmsNorm { eps, width: self.width, unit_offset: false }, &[x, w])
    }

    fn rotated(&self, e: &mut LayerEmitter<'_>, x: ValueId) -> Result<ValueId, PersistentError> {
        let (Some(cos), Some(sin)) = (self.inputs.cos_pos_embed, self.inputs.sin_pos_embed) else { return Ok(x) };
        let tables = [e.table(cos, self.width / 2)?, e.table(sin, self.width / 2)?];
        let positions = e.step.positions()?;
        let op = Rope { width: self.width, rotary: self.width, interleaved: false, per_row: false };
        e.op("rope", op, &[x, tables[0], tables[1], positions])
    }
}

impl Layer for AttentionLayer {
    fn method(&self) -> &'static str {
        self.method
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let (heads, kv_heads, width) = (self.heads, self.kv_heads, self.width);
        let [q, k, v] = e.parts(0, [heads / kv_heads, 1, 1], kv_heads)?;
        let (q, k) = (self.normed(e, q, self.inputs.q_norm)?, self.normed(e, k, self.inputs.k_norm)?);
        let (q, k) = (self.rotated(e, q)?, self.rotated(e, k)?);
        let group = KvCacheSpec::Paged { kv_heads, k_width: width, v_width: width, window: None };
        let block = Type::new(DType::Stored(self.format), [BLOCK as u32, kv_heads, 2 * width]);
        let [state, slots, table] = e.kv_cache(group, block.clone())?;
        e.keep(kv_heads, block, &[(self.inputs.k_cache, k), (self.inputs.v_cache, v)])?;
        let kv = e.op("kv", KvAppend { kv_heads }, &[state, k, v, slots])?;
        let op = Attention {
            heads,
            kv_heads,
            k_width: width,
            v_width: width,
            scale: F32((1.0 / f64::from(width).sqrt()) as f32),
            softcap: F32(0.0),
            window: 0,
            causal: true,
            cached: true,
            v_in_k: false,
        };
        let (positions, seqs) = (e.step.positions()?, e.step.seqs()?);
        Ok(vec![LayerOutput::One(e.op("attention", op, &[q, kv, positions, seqs, table])?)])
    }
}
