//! Latent attention (DeepSeek-V2, arXiv 2405.04434) in the absorbed form: `mla_kv_gather_layer`, `mla_decode_layer`,
//! `mla_reduce_layer`, `mla_prefill_layer` and their kin; `mla_rope_layer`, `assemble_q_decode_layer`.
//!
//! The cache keeps a compressed row and one rotated key for all heads. Queries come in the compressed space, each followed by
//! its rotated part, and what attention gives back is in the compressed space as well. [`KernelBuilder::linear_bmm_layer`]
//! carries both in and out. Decoding and prefill are one op here, and how it is cut is decided anew in each step.

use crate::builder::KernelBuilder;
use crate::elements::KernelDType;
use crate::emit::{LayerEmitter, LayerOutput};
use crate::error::PersistentError;
use crate::grid::LaunchDims;
use crate::layer::Layer;
use crate::tensor::TensorId;
use yirage_engine::limits::BLOCK;
use yirage_ir::op::{Attention, ConcatHeads, KvAppend, Rope};
use yirage_ir::{DType, F32, Format, Type, ValueId};
use yirage_model::arch::KvCacheSpec;

const GATHER: &str = "mla_kv_gather_layer";
const GATHER_SPLIT: &str = "mla_kv_gather_split_layer";
const PREFILL: &str = "mla_prefill_layer";
const PREFILL_ABSORBED: &str = "mla_prefill_absorbed_layer";
const ROPE: &str = "mla_rope_layer";
const ASSEMBLE: &str = "assemble_q_decode_layer";

/// The first half of a split layer, and its second one.
const HALVES: [[&str; 2]; 2] =
    [["mla_decode_layer", "mla_reduce_layer"], ["mla_mtp_decode_layer", "mla_mtp_reduce_layer"]];

/// Sizes of latent attention, and the factor of its scores.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LatentAttention {
    /// Query heads.
    pub num_heads: u32,
    /// Elements of a compressed row, which are also those of a value: `kv_lora_rank`.
    pub d_v: u32,
    /// Elements of a key that carry the position: `qk_rope_head_dim`.
    pub d_kpe: u32,
    /// Factor of the scores. DeepSeek's is 1 / sqrt(`qk_nope_head_dim` + `qk_rope_head_dim`), times what its scaling of
    /// positions adds.
    pub softmax_scale: f32,
}

/// Reads compressed rows and rotated keys.
#[derive(Debug)]
struct LatentGather {
    method: &'static str,
    cache: TensorId,
    rank: u32,
    rope: u32,
    format: Format,
    outputs: usize,
}

/// Reads queries, or both parts of them, and then the cache.
#[derive(Debug)]
struct LatentAttend {
    method: &'static str,
    attention: LatentAttention,
    parts: usize,
    /// Whether a second half reads what it writes.
    halves: bool,
}

#[derive(Debug)]
struct Reduce {
    method: &'static str,
}

/// Reads both parts of queries.
#[derive(Debug)]
struct Assemble {
    heads: u32,
}

#[derive(Debug)]
struct RopeLayer {
    tables: [TensorId; 2],
    width: u32,
    interleaved: bool,
}

impl KernelBuilder {
    /// Appends to the cache: `c_latent` is `[rows, rank]` behind its norm, `k_pe` `[rows, rope]` rotated, `paged_cache`
    /// `[pages, page_size, rank + rope]`. `contiguous_kv` stands for the cache, and only layers of latent attention read it.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit and a cache that another layer has.
    pub fn mla_kv_gather_layer(
        &mut self,
        c_latent: TensorId,
        k_pe: TensorId,
        paged_cache: TensorId,
        contiguous_kv: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.gather(GATHER, [c_latent, k_pe], paged_cache, &[contiguous_kv], launch)
    }

    /// [`KernelBuilder::mla_kv_gather_layer`] with an output for the compressed rows and one for the rotated keys, which
    /// [`KernelBuilder::mla_prefill_layer`] reads together.
    ///
    /// # Errors
    /// As [`KernelBuilder::mla_kv_gather_layer`].
    pub fn mla_kv_gather_split_layer(
        &mut self,
        c_latent: TensorId,
        k_pe: TensorId,
        paged_cache: TensorId,
        [ckv, kpe]: [TensorId; 2],
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.gather(GATHER_SPLIT, [c_latent, k_pe], paged_cache, &[ckv, kpe], launch)
    }

    fn gather(
        &mut self,
        method: &'static str,
        rows: [TensorId; 2],
        cache: TensorId,
        writes: &[TensorId],
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let (rank, rope) = (self.width(rows[0])?, self.width(rows[1])?);
        let of = self.of(cache)?;
        let wrong = |why| Err(PersistentError::Layer { layer: method, why });
        let wanted = rank.checked_add(rope);
        let kept = of.tensor.dims.iter().skip(2).try_fold(1u32, |all, &n| all.checked_mul(n));
        if !(3..=4).contains(&of.tensor.dims.len()) || wanted.is_none() || kept != wanted {
            let (name, dims) = (&of.name, &of.tensor.dims);
            return wrong(format!("`{name}` is {dims:?}, [pages, page_size, {rank} + {rope}] is wanted"));
        }
        let KernelDType::Floats(format) = of.tensor.elements else {
            return wrong(format!("`{}` is {}, a cache of floats is wanted", of.name, of.tensor.elements));
        };
        self.take_cache(method, &[cache])?;
        let layer = LatentGather { method, cache, rank, rope, format, outputs: writes.len() };
        self.record_of(layer, launch, &rows, writes, &rows)
    }

    /// Attention of `q`, `[rows, num_heads * (d_v + d_kpe)]`, over what `kv` stands for. `output` are two tensors, parts of
    /// results and their sums of weights in Mirage, which stand for the results and only
    /// [`KernelBuilder::mla_reduce_layer`] reads.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit and a `kv` that no gathering layer wrote.
    pub fn mla_decode_layer(
        &mut self,
        q: TensorId,
        kv: TensorId,
        output: [TensorId; 2],
        attention: LatentAttention,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.attend_latent(HALVES[0][0], &[q], &[kv], &output, attention, launch)
    }

    /// The second half of [`KernelBuilder::mla_decode_layer`]: `output` is `[rows, num_heads * d_v]`.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for inputs that no first half wrote, and sizes that do not fit.
    pub fn mla_reduce_layer(
        &mut self,
        input: [TensorId; 2],
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.reduce_latent(HALVES[0], input, output, launch)
    }

    /// [`KernelBuilder::mla_decode_layer`] for several new tokens of a request.
    ///
    /// # Errors
    /// As [`KernelBuilder::mla_decode_layer`].
    pub fn mla_mtp_decode_layer(
        &mut self,
        q: TensorId,
        kv: TensorId,
        output: [TensorId; 2],
        attention: LatentAttention,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.attend_latent(HALVES[1][0], &[q], &[kv], &output, attention, launch)
    }

    /// The second half of [`KernelBuilder::mla_mtp_decode_layer`].
    ///
    /// # Errors
    /// As [`KernelBuilder::mla_reduce_layer`].
    pub fn mla_mtp_reduce_layer(
        &mut self,
        input: [TensorId; 2],
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.reduce_latent(HALVES[1], input, output, launch)
    }

    /// Attention of queries in two parts, `[rows, num_heads * d_v]` and `[rows, num_heads * d_kpe]`, over what `ckv` and `kpe`
    /// stand for. `output` is `[rows, num_heads * d_v]`.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit and a cache that no [`KernelBuilder::mla_kv_gather_split_layer`]
    /// wrote.
    pub fn mla_prefill_layer(
        &mut self,
        [q_nope, q_pe]: [TensorId; 2],
        [ckv, kpe]: [TensorId; 2],
        output: TensorId,
        attention: LatentAttention,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.attend_latent(PREFILL, &[q_nope, q_pe], &[ckv, kpe], &[output], attention, launch)
    }

    /// [`KernelBuilder::mla_prefill_layer`] with both parts of each query beside each other, over what `kv` stands for.
    ///
    /// # Errors
    /// As [`KernelBuilder::mla_decode_layer`].
    pub fn mla_prefill_absorbed_layer(
        &mut self,
        q: TensorId,
        kv: TensorId,
        output: TensorId,
        attention: LatentAttention,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        self.attend_latent(PREFILL_ABSORBED, &[q], &[kv], &[output], attention, launch)
    }

    fn attend_latent(
        &mut self,
        method: &'static str,
        queries: &[TensorId],
        cache: &[TensorId],
        writes: &[TensorId],
        attention: LatentAttention,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let wrong = |why| Err(PersistentError::Layer { layer: method, why });
        let LatentAttention { num_heads, d_v, d_kpe, softmax_scale } = attention;
        let sizes = num_heads > 0 && d_v > 0 && d_kpe > 0 && softmax_scale.is_finite();
        let Some(whole) = d_v.checked_add(d_kpe).filter(|_| sizes) else {
            return wrong(format!(
                "{attention:?}: heads and sizes of at least 1, and no larger together than a number has, and a finite factor are wanted"
            ));
        };
        let widths = if queries.len() == 2 { vec![d_v, d_kpe] } else { vec![whole] };
        for (&query, width) in queries.iter().zip(widths) {
            self.check_width(method, query, width.saturating_mul(num_heads))?;
        }
        let halves = writes.len() == 2;
        if !halves {
            self.check_width(method, writes[0], d_v.saturating_mul(num_heads))?;
        }
        let by = if cache.len() == 2 { GATHER_SPLIT } else { GATHER };
        let writers: Vec<_> = cache.iter().map(|&id| self.writer(id)).collect();
        let gathered = writers[0].filter(|(method, _)| *method == by && writers.iter().all(|of| *of == writers[0]));
        let Some((_, layer)) = gathered else {
            let names = cache.iter().map(|&id| self.of(id).map(|of| of.name.clone())).collect::<Result<Vec<_>, _>>()?;
            return wrong(format!("{names:?} stands for no cache: what one {by} wrote is wanted"));
        };
        let kept = self.wires[layer].reads.iter().map(|read| self.width(read.tensor)).collect::<Result<Vec<_>, _>>()?;
        if kept != [d_v, d_kpe] {
            return wrong(format!("the cache keeps rows and keys of {kept:?} elements, {:?} are wanted", [d_v, d_kpe]));
        }
        let rows = if halves { queries.to_vec() } else { [queries, writes].concat() };
        let layer = LatentAttend { method, attention, parts: queries.len(), halves };
        self.record_of(layer, launch, &[queries, cache].concat(), writes, &rows)
    }

    fn reduce_latent(
        &mut self,
        [first, method]: [&'static str; 2],
        input: [TensorId; 2],
        output: TensorId,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let writers = input.map(|id| self.writer(id));
        if writers[0] != writers[1] || writers[0].map(|(method, _)| method) != Some(first) {
            let why = format!("its two inputs are those that one {first} wrote");
            return Err(PersistentError::Layer { layer: method, why });
        }
        self.record_of(Reduce { method }, launch, &input, &[output], &[output])
    }

    /// Both parts of each head's query beside each other: `q_nope` is `[rows, num_heads * d_v]`, `q_pe`
    /// `[rows, num_heads * d_kpe]`, `output` `[rows, num_heads * (d_v + d_kpe)]`.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn assemble_q_decode_layer(
        &mut self,
        [q_nope, q_pe]: [TensorId; 2],
        output: TensorId,
        num_heads: u32,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let widths = [self.width(q_nope)?, self.width(q_pe)?];
        if num_heads == 0 || widths.iter().any(|width| !width.is_multiple_of(num_heads)) {
            let why = format!("rows of {widths:?} elements do not divide into {num_heads} heads");
            return Err(PersistentError::Layer { layer: ASSEMBLE, why });
        }
        self.check_width(ASSEMBLE, output, widths[0].saturating_add(widths[1]))?;
        self.record(Assemble { heads: num_heads }, launch, &[q_nope, q_pe], &[output])
    }

    /// Rotates every head of `input`, `[rows, heads * width]`, by the tables, which have `width` or `width / 2` columns.
    /// Pairs are neighbours where `interleaved`, as in Mirage's `deepseek_mla_rope_q_layer` and `deepseek_mla_rope_k_layer`,
    /// and halves otherwise.
    ///
    /// # Errors
    /// [`PersistentError::Layer`] for sizes that do not fit.
    pub fn mla_rope_layer(
        &mut self,
        input: TensorId,
        tables: [TensorId; 2],
        output: TensorId,
        width: u32,
        interleaved: bool,
        launch: LaunchDims,
    ) -> Result<(), PersistentError> {
        let all = self.width(input)?;
        if width == 0 || !width.is_multiple_of(2) || !all.is_multiple_of(width) {
            let why = format!("rows of {all} elements are no heads of {width}: whole heads of an even size are wanted");
            return Err(PersistentError::Layer { layer: ROPE, why });
        }
        self.check_width(ROPE, output, all)?;
        self.record(RopeLayer { tables, width, interleaved }, launch, &[input], &[output])
    }

    /// Notes that a layer has the cache of these tensors.
    pub(super) fn take_cache(&mut self, layer: &'static str, cache: &[TensorId]) -> Result<(), PersistentError> {
        if let Some((&tensor, other)) = cache.iter().find_map(|id| Some((id, self.caches.get(id)?))) {
            let why = format!("`{}` is the cache of layer {other} already", self.of(tensor)?.name);
            return Err(PersistentError::Layer { layer, why });
        }
        let at = self.layers();
        self.caches.extend(cache.iter().map(|&id| (id, at)));
        Ok(())
    }
}

impl Layer for LatentGather {
    fn method(&self) -> &'static str {
        self.method
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let (row, rope) = (e.read(0)?, e.read(1)?);
        let key = e.op("key", ConcatHeads { groups: 1 }, &[row, rope])?;
        let width = self.rank + self.rope;
        let group = KvCacheSpec::Latent { rank: self.rank, rope: self.rope };
        let block = Type::new(DType::Stored(self.format), [BLOCK as u32, 1, width]);
        let [state, slots, table] = e.kv_cache(group, block.clone())?;
        e.keep(1, block, &[(self.cache, key)])?;
        let kv = e.op("kv", KvAppend { kv_heads: 1 }, &[state, key, slots])?;
        Ok(vec![LayerOutput::Cached { kv, table }; self.outputs])
    }
}

impl Layer for LatentAttend {
    fn method(&self) -> &'static str {
        self.method
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let LatentAttention { num_heads, d_v, d_kpe, softmax_scale } = self.attention;
        let mut query: ValueId = e.read(0)?;
        if self.parts == 2 {
            let rotated = e.read(1)?;
            query = e.op("query", ConcatHeads { groups: num_heads }, &[query, rotated])?;
        }
        let [kv, table] = e.cached(self.parts)?;
        let op = Attention {
            heads: num_heads,
            kv_heads: 1,
            k_width: d_v + d_kpe,
            v_width: d_v,
            scale: F32(softmax_scale),
            softcap: F32(0.0),
            window: 0,
            causal: true,
            cached: true,
            v_in_k: true,
        };
        let (positions, seqs) = (e.step.positions()?, e.step.seqs()?);
        let attended = e.op("attention", op, &[query, kv, positions, seqs, table])?;
        Ok(if self.halves { vec![LayerOutput::Attended(attended); 2] } else { vec![LayerOutput::One(attended)] })
    }
}

impl Layer for Reduce {
    fn method(&self) -> &'static str {
        self.method
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        Ok(vec![LayerOutput::One(e.attended(0)?)])
    }
}

impl Layer for Assemble {
    fn method(&self) -> &'static str {
        ASSEMBLE
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let (nope, rope) = (e.read(0)?, e.read(1)?);
        Ok(vec![LayerOutput::One(e.op("query", ConcatHeads { groups: self.heads }, &[nope, rope])?)])
    }
}

impl Layer for RopeLayer {
    fn method(&self) -> &'static str {
        ROPE
    }

    fn emit(&self, e: &mut LayerEmitter<'_>) -> Result<Vec<LayerOutput>, PersistentError> {
        let x = e.read(0)?;
        let [cos, sin] = self.tables;
        let tables = [e.table(cos, self.width / 2)?, e.table(sin, self.width / 2)?];
        let positions = e.step.positions()?;
        let op = Rope { width: self.width, rotary: self.width, interleaved: self.interleaved, per_row: false };
        Ok(vec![LayerOutput::One(e.op("rope", op, &[x, tables[0], tables[1], positions])?)])
    }
}
