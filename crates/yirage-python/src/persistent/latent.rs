//! The layer methods of DeepSeek's models, one a row: latent attention, a matrix for each head, and weights of 8-bit floats.
//!
//! Names, order and tuples are Mirage's where it has such a layer. This file knows no sizes of tensors: `KernelBuilder` has
//! them, and numbers of a tuple are held against it.

use super::layers::KernelLayers;
use super::shared::wrong;
use super::table::{GridArgument, LayerCall, TensorHandle, launch};
use crate::failure::PyOutcome;
use pyo3::prelude::*;
use yirage_persistent::{KernelBuilder, LatentAttention, LaunchDims, PersistentError, TensorId};

/// The layer methods of a ``PersistentKernel`` for models of DeepSeek, by the names and arguments of Mirage.
///
/// Latent attention (arXiv 2405.04434) keeps one compressed row and one rotated key of a token for all heads. Queries come in
/// the space of the compressed rows, and what attention gives back is in it as well: ``linear_bmm_layer`` carries both in and
/// out. Of ``mla_params`` the sizes are held against the tensors. Numbers of splits, lengths and ranges of columns decide
/// nothing: attention is cut anew in each step, and lengths are those of the requests.
///
/// ``softmax_scale`` is the factor of the scores. Without it the factor is the one that Mirage's kernels have, DeepSeek-V3's:
/// ``(0.1 * log(40) + 1)**2 / sqrt(192)``, about 0.1352.
///
/// No device here computes with 8-bit floats. Weights are widened with their scales when they are loaded, and activations are
/// not rounded, so results are nearer to the exact ones than those of a GPU.
///
/// Raises:
///     KernelError: sizes that do not fit each other or ``mla_params``, tensors that are none of these layers'.
#[pyclass(extends = KernelLayers, frozen, subclass, module = "yirage")]
pub(crate) struct LatentLayers;

const SPLITS: &str = "PersistentKernel: numbers of splits, lengths and ranges of columns of latent attention decide nothing: \
                      it is cut anew in each step, and lengths are those of the requests";
const SCALES: &str =
    "PersistentKernel: scale_ue8m0 changes nothing: quantize_fp8_layer rounds nothing, so it has no scales";

/// Sizes of DeepSeek-V3, which Mirage's layers without a tuple have, and the heads of one of several ranks.
const HEADS: u32 = 128;
const HEADS_OF_2: u32 = 64;
const HEADS_OF_4: u32 = 32;
const HEADS_OF_8: u32 = 16;
const D_K: u32 = 576;
const D_V: u32 = 512;

/// The factor of scores that Mirage's kernels have: of DeepSeek-V3, whose heads have 128 + 64 elements and whose positions are
/// stretched 40 times by YaRN (arXiv 2309.00071).
fn scale_of_mirage() -> f32 {
    ((0.1 * 40f64.ln() + 1.0).powi(2) / 192f64.sqrt()) as f32
}

/// The numbers of a tuple, whose places have names.
fn numbers<const N: usize>(what: &str, given: &[u32], names: [&str; N]) -> PyOutcome<[u32; N]> {
    let text = || format!("{what}: mla_params has {} numbers: ({}) is wanted", given.len(), names.join(", "));
    <[u32; N]>::try_from(given).map_err(|_| wrong(text()))
}

/// The numbers of a tuple that may have `q_len` as its last one; that is no size.
fn with_length(what: &str, given: &[u32], names: [&str; 5], q_len: u32) -> PyOutcome<[u32; 5]> {
    let (sizes, length) = match given {
        [sizes @ .., length] if given.len() == 6 => (sizes, *length),
        sizes => (sizes, q_len),
    };
    lengths(what, &[("q_len", length)])?;
    numbers(what, sizes, names)
}

/// Whether lengths are some; nothing more depends on them.
fn lengths(what: &str, given: &[(&str, u32)]) -> PyOutcome<()> {
    match given.iter().find(|(_, n)| *n == 0) {
        None => Ok(()),
        Some((name, _)) => Err(wrong(format!("{what}: {name} is 0: a number from 1 on is wanted"))),
    }
}

/// What a layer of attention is told.
fn attention(what: &str, [num_heads, d_k, d_v]: [u32; 3], softmax_scale: Option<f32>) -> PyOutcome<LatentAttention> {
    let text = || format!("{what}: d_k is {d_k} and d_v is {d_v}: a key is a value and its rotated part");
    let d_kpe = d_k.checked_sub(d_v).ok_or_else(|| wrong(text()))?;
    let softmax_scale = softmax_scale.unwrap_or_else(scale_of_mirage);
    Ok(LatentAttention { num_heads, d_v, d_kpe, softmax_scale })
}

/// Whether a number of a tuple is what a tensor has.
fn agree(layer: &'static str, name: &str, given: u32, found: u32) -> Result<(), PersistentError> {
    if given == found {
        return Ok(());
    }
    let why = format!("{name} of mla_params is {given}, and its tensors have {found}");
    Err(PersistentError::Layer { layer, why })
}

/// Elements of a row.
fn width(builder: &KernelBuilder, id: TensorId) -> Result<u32, PersistentError> {
    Ok(builder.tensor(id)?.dims.iter().skip(1).fold(1, |n: u32, &m| n.saturating_mul(m)))
}

/// Whether `(d_k, d_v, page_size)` is what a gathering layer's tensors have.
fn gathers(
    layer: &'static str,
    builder: &KernelBuilder,
    [row, key, cache]: [TensorId; 3],
    [d_k, d_v, page_size]: [u32; 3],
) -> Result<(), PersistentError> {
    let (rank, rope) = (width(builder, row)?, width(builder, key)?);
    agree(layer, "d_v", d_v, rank)?;
    agree(layer, "d_k", d_k, rank.saturating_add(rope))?;
    match builder.tensor(cache)?.dims.get(1) {
        Some(&found) => agree(layer, "page_size", page_size, found),
        // The layer itself says what is wrong with such a cache.
        None => Ok(()),
    }
}

/// Numbers of a layer of prefill: heads, elements of a key, elements of a value.
fn prefill(what: &str, mla_params: &[u32]) -> PyOutcome<[u32; 3]> {
    let names = ["num_heads", "seq_len", "d_ckv", "d_kpe", "d_v"];
    let [num_heads, seq_len, d_ckv, d_kpe, d_v] = numbers(what, mla_params, names)?;
    lengths(what, &[("seq_len", seq_len)])?;
    if d_ckv != d_v {
        return Err(wrong(format!(
            "{what}: d_ckv is {d_ckv} and d_v is {d_v}: values are the compressed rows themselves"
        )));
    }
    let d_k = d_ckv.checked_add(d_kpe).ok_or_else(|| wrong(format!("{what}: d_ckv and d_kpe are too large")))?;
    Ok([num_heads, d_k, d_v])
}

/// Numbers of the layer that adds parts of results up: heads, elements of a value.
fn reduces(what: &str, mla_params: &[u32], q_len: u32) -> PyOutcome<[u32; 2]> {
    let names = ["num_heads", "d_v", "num_splits", "d_start", "d_count"];
    let [num_heads, d_v, num_splits, d_start, d_count] = with_length(what, mla_params, names, q_len)?;
    lengths(what, &[("num_splits", num_splits), ("d_count", d_count)])?;
    if d_start.checked_add(d_count).is_none_or(|end| end > d_v) {
        return Err(wrong(format!("{what}: {d_count} columns from {d_start} on are not within d_v, which is {d_v}")));
    }
    Ok([num_heads, d_v])
}

/// The first half of attention over several new tokens of a request, by any of its names.
fn mtp_decode(
    call: &LayerCall<'_, '_>,
    [q, kv, partial, lse]: [TensorId; 4],
    [q_len, kv_len]: [u32; 2],
    sizes: [u32; 3],
    softmax_scale: Option<f32>,
) -> PyOutcome<()> {
    lengths(call.what, &[("q_len", q_len), ("kv_len", kv_len)])?;
    let attention = attention(call.what, sizes, softmax_scale)?;
    call.tell_once(SPLITS)?;
    call.add(|b| b.mla_mtp_decode_layer(q, kv, [partial, lse], attention, LaunchDims::ONE))
}

/// Its second half.
fn mtp_reduce(
    call: &LayerCall<'_, '_>,
    [partial, lse, output]: [TensorId; 3],
    [q_len, kv_len]: [u32; 2],
) -> PyOutcome<()> {
    lengths(call.what, &[("q_len", q_len), ("kv_len", kv_len)])?;
    call.tell_once(SPLITS)?;
    call.add(|b| b.mla_mtp_reduce_layer([partial, lse], output, LaunchDims::ONE))
}

layer_methods! {
    LatentLayers, |slf| &slf.as_super().get().0;

    /// Each head's part of a row by a matrix of its own: ``input`` is ``[rows, heads * columns]``, ``weight``
    /// ``[heads, rows_of_weight, columns]``, ``output`` ``[rows, heads * rows_of_weight]``.
    fn linear_bmm_layer(input: TensorHandle, weight: TensorHandle, output: TensorHandle; launch);

    /// Rotates every head of ``input``, ``[rows, heads * width]``, by its position. Tables are ``[positions, width]`` with both
    /// halves alike, or ``[positions, width / 2]``. Pairs are neighbours where ``interleaved``, as in DeepSeek's checkpoints,
    /// and halves otherwise.
    fn mla_rope_layer(
        input: TensorHandle, cos_pos_embed: TensorHandle, sin_pos_embed: TensorHandle, output: TensorHandle, width: u32;
        launch; *, interleaved: bool = true
    ) => |call| {
        let tables = [cos_pos_embed, sin_pos_embed];
        call.add(|b| b.mla_rope_layer(input, tables, output, width, interleaved, launch))
    };

    /// Both parts of each head's query beside each other: ``q_nope`` is ``[rows, num_heads * d_v]``, ``q_pe``
    /// ``[rows, num_heads * d_kpe]``, ``output`` ``[rows, num_heads * (d_v + d_kpe)]``.
    fn assemble_q_decode_layer(
        q_nope: TensorHandle, q_pe: TensorHandle, output: TensorHandle, num_heads: u32; launch
    ) => |call| call.add(|b| b.assemble_q_decode_layer([q_nope, q_pe], output, num_heads, launch));

    /// Appends to the cache: ``c_latent_new`` is ``[rows, d_v]`` behind its norm, ``k_pe_new`` ``[rows, d_k - d_v]`` rotated,
    /// ``paged_cache`` ``[pages, page_size, d_k]``, as of ``paged_attention_layer``. ``contiguous_kv`` stands for the
    /// cache, and only layers of latent attention read it.
    ///
    /// Args:
    ///     mla_params: ``(d_k, d_v, page_size)``.
    fn mla_kv_gather_layer(
        c_latent_new: TensorHandle, k_pe_new: TensorHandle, paged_cache: TensorHandle, contiguous_kv: TensorHandle,
        mla_params: Vec<u32>; launch
    ) => |call| {
        let sizes = numbers(call.what, &mla_params, ["d_k", "d_v", "page_size"])?;
        call.add(|b| {
            gathers(call.what, b, [c_latent_new, k_pe_new, paged_cache], sizes)?;
            b.mla_kv_gather_layer(c_latent_new, k_pe_new, paged_cache, contiguous_kv, launch)
        })
    };

    /// ``mla_kv_gather_layer`` with an output for the compressed rows and one for the rotated keys, which
    /// ``mla_prefill_layer`` reads together.
    ///
    /// Args:
    ///     mla_params: ``(d_k, d_v, page_size)``.
    fn mla_kv_gather_split_layer(
        c_latent_new: TensorHandle, k_pe_new: TensorHandle, paged_cache: TensorHandle, ckv_sep: TensorHandle,
        kpe_sep: TensorHandle, mla_params: Vec<u32>; launch
    ) => |call| {
        let sizes = numbers(call.what, &mla_params, ["d_k", "d_v", "page_size"])?;
        call.add(|b| {
            gathers(call.what, b, [c_latent_new, k_pe_new, paged_cache], sizes)?;
            b.mla_kv_gather_split_layer(c_latent_new, k_pe_new, paged_cache, [ckv_sep, kpe_sep], launch)
        })
    };

    /// Attention of ``q_input``, ``[rows, num_heads * d_k]``, over what ``kv_input`` stands for. ``output_partial`` and
    /// ``output_lse``, parts of results and their sums of weights in Mirage, stand for the results here, and only
    /// ``mla_reduce_layer`` reads them. They may have as many rows as there are splits.
    ///
    /// Args:
    ///     mla_params: ``(num_heads, d_k, d_v, num_splits, kv_len)``, with ``q_len`` behind them or without it.
    fn mla_decode_layer(
        q_input: TensorHandle, kv_input: TensorHandle, output_partial: TensorHandle, output_lse: TensorHandle,
        mla_params: Vec<u32>; launch, q_len: u32 = 1; *, softmax_scale: Option<f32> = None
    ) => |call| {
        let names = ["num_heads", "d_k", "d_v", "num_splits", "kv_len"];
        let [num_heads, d_k, d_v, num_splits, kv_len] = with_length(call.what, &mla_params, names, q_len)?;
        lengths(call.what, &[("num_splits", num_splits), ("kv_len", kv_len)])?;
        let attention = attention(call.what, [num_heads, d_k, d_v], softmax_scale)?;
        call.tell_once(SPLITS)?;
        call.add(|b| b.mla_decode_layer(q_input, kv_input, [output_partial, output_lse], attention, launch))
    };

    /// The second half of ``mla_decode_layer``: ``output`` is ``[rows, num_heads * d_v]``, all columns of it.
    ///
    /// Args:
    ///     mla_params: ``(num_heads, d_v, num_splits, d_start, d_count)``, with ``q_len`` behind them or without it.
    fn mla_reduce_layer(
        input_partial: TensorHandle, input_lse: TensorHandle, output: TensorHandle, mla_params: Vec<u32>; launch,
        q_len: u32 = 1
    ) => |call| {
        let [num_heads, d_v] = reduces(call.what, &mla_params, q_len)?;
        call.tell_once(SPLITS)?;
        call.add(|b| {
            agree(call.what, "num_heads * d_v", num_heads.saturating_mul(d_v), width(b, output)?)?;
            b.mla_reduce_layer([input_partial, input_lse], output, launch)
        })
    };

    /// ``mla_decode_layer`` for several new tokens of a request. Mirage has it for the sizes of DeepSeek-V3 alone, which are
    /// the defaults of the three last numbers.
    fn mla_mtp_decode_layer(
        q_input: TensorHandle, kv_input: TensorHandle, output_partial: TensorHandle, output_lse: TensorHandle, q_len: u32,
        kv_len: u32; *, num_heads: u32 = HEADS, d_k: u32 = D_K, d_v: u32 = D_V, softmax_scale: Option<f32> = None
    ) => |call| {
        let tensors = [q_input, kv_input, output_partial, output_lse];
        mtp_decode(call, tensors, [q_len, kv_len], [num_heads, d_k, d_v], softmax_scale)
    };

    /// The second half of ``mla_mtp_decode_layer``: ``output`` is ``[rows, num_heads * d_v]``.
    fn mla_mtp_reduce_layer(
        input_partial: TensorHandle, input_lse: TensorHandle, output: TensorHandle, q_len: u32, kv_len: u32
    ) => |call| mtp_reduce(call, [input_partial, input_lse, output], [q_len, kv_len]);

    /// ``mla_mtp_decode_layer`` of one of 2 ranks, which has 64 of DeepSeek-V3's heads.
    fn mla_mtp_decode_tp2_layer(
        q_input: TensorHandle, kv_input: TensorHandle, output_partial: TensorHandle, output_lse: TensorHandle, q_len: u32,
        kv_len: u32; *, num_heads: u32 = HEADS_OF_2, d_k: u32 = D_K, d_v: u32 = D_V, softmax_scale: Option<f32> = None
    ) => |call| {
        let tensors = [q_input, kv_input, output_partial, output_lse];
        mtp_decode(call, tensors, [q_len, kv_len], [num_heads, d_k, d_v], softmax_scale)
    };

    /// The second half of ``mla_mtp_decode_tp2_layer``.
    fn mla_mtp_decode_tp2_reduce_layer(
        input_partial: TensorHandle, input_lse: TensorHandle, output: TensorHandle, q_len: u32, kv_len: u32
    ) => |call| mtp_reduce(call, [input_partial, input_lse, output], [q_len, kv_len]);

    /// ``mla_mtp_decode_layer`` of one of 4 ranks, which has 32 of DeepSeek-V3's heads.
    fn mla_mtp_decode_tp4_layer(
        q_input: TensorHandle, kv_input: TensorHandle, output_partial: TensorHandle, output_lse: TensorHandle, q_len: u32,
        kv_len: u32; *, num_heads: u32 = HEADS_OF_4, d_k: u32 = D_K, d_v: u32 = D_V, softmax_scale: Option<f32> = None
    ) => |call| {
        let tensors = [q_input, kv_input, output_partial, output_lse];
        mtp_decode(call, tensors, [q_len, kv_len], [num_heads, d_k, d_v], softmax_scale)
    };

    /// The second half of ``mla_mtp_decode_tp4_layer``.
    fn mla_mtp_decode_tp4_reduce_layer(
        input_partial: TensorHandle, input_lse: TensorHandle, output: TensorHandle, q_len: u32, kv_len: u32
    ) => |call| mtp_reduce(call, [input_partial, input_lse, output], [q_len, kv_len]);

    /// ``mla_mtp_decode_layer`` of one of 8 ranks, which has 16 of DeepSeek-V3's heads.
    fn mla_mtp_decode_tp8_layer(
        q_input: TensorHandle, kv_input: TensorHandle, output_partial: TensorHandle, output_lse: TensorHandle,
        q_len_real: u32, kv_len: u32; *, num_heads: u32 = HEADS_OF_8, d_k: u32 = D_K, d_v: u32 = D_V,
        softmax_scale: Option<f32> = None
    ) => |call| {
        let tensors = [q_input, kv_input, output_partial, output_lse];
        mtp_decode(call, tensors, [q_len_real, kv_len], [num_heads, d_k, d_v], softmax_scale)
    };

    /// The second half of ``mla_mtp_decode_tp8_layer``.
    fn mla_mtp_decode_tp8_reduce_layer(
        input_partial: TensorHandle, input_lse: TensorHandle, output: TensorHandle, q_len_real: u32, kv_len: u32
    ) => |call| mtp_reduce(call, [input_partial, input_lse, output], [q_len_real, kv_len]);

    /// Attention of queries in two parts, ``[rows, num_heads * d_ckv]`` and ``[rows, num_heads * d_kpe]``, over what ``ckv``
    /// and ``kpe`` of one ``mla_kv_gather_split_layer`` stand for. ``output`` is ``[rows, num_heads * d_v]``.
    ///
    /// Args:
    ///     mla_params: ``(num_heads, seq_len, d_ckv, d_kpe, d_v)``; ``d_v`` is ``d_ckv``.
    fn mla_prefill_layer(
        q_nope: TensorHandle, q_pe: TensorHandle, ckv: TensorHandle, kpe: TensorHandle, output: TensorHandle,
        mla_params: Vec<u32>; launch; *, softmax_scale: Option<f32> = None
    ) => |call| {
        let attention = attention(call.what, prefill(call.what, &mla_params)?, softmax_scale)?;
        call.tell_once(SPLITS)?;
        call.add(|b| b.mla_prefill_layer([q_nope, q_pe], [ckv, kpe], output, attention, launch))
    };

    /// ``mla_prefill_layer`` with both parts of each query beside each other, ``[rows, num_heads * (d_ckv + d_kpe)]``, over
    /// what ``kv`` of a ``mla_kv_gather_layer`` stands for.
    ///
    /// Args:
    ///     mla_params: ``(num_heads, seq_len, d_ckv, d_kpe, d_v)``; ``d_v`` is ``d_ckv``.
    fn mla_prefill_absorbed_layer(
        q: TensorHandle, kv: TensorHandle, output: TensorHandle, mla_params: Vec<u32>; launch; *,
        softmax_scale: Option<f32> = None
    ) => |call| {
        let attention = attention(call.what, prefill(call.what, &mla_params)?, softmax_scale)?;
        call.tell_once(SPLITS)?;
        call.add(|b| b.mla_prefill_absorbed_layer(q, kv, output, attention, launch))
    };

    /// Rows for layers of 8-bit floats: ``output_fp8`` stands for ``input`` and ``output_scale`` for its scales, which only
    /// those layers read. Nothing is rounded.
    fn quantize_fp8_layer(
        input: TensorHandle, output_fp8: TensorHandle, output_scale: TensorHandle; launch, scale_ue8m0: bool = true
    ) => |call| {
        if !scale_ue8m0 {
            call.tell_once(SCALES)?;
        }
        call.add(|b| b.quantize_fp8_layer(input, [output_fp8, output_scale], launch))
    };

    /// ``output = input @ weight.T``: ``input_fp8`` and ``input_scale`` are those of one ``quantize_fp8_layer``, ``weight_fp8``
    /// is ``[n, k]`` of float8_e4m3fn. ``weight_scale`` has floats for blocks of 128 columns and 128 rows,
    /// ``[n / 128, k / 128]`` rounded up, or one row, ``[n, k / 128]``; or int32 ``[n, k / 512]`` with four exponents E8M0 in
    /// each, the first one lowest.
    fn linear_fp8_layer(
        input_fp8: TensorHandle, input_scale: TensorHandle, weight_fp8: TensorHandle, weight_scale: TensorHandle,
        output: TensorHandle; launch
    ) => |call| {
        let (rows, weight) = ([input_fp8, input_scale], [weight_fp8, weight_scale]);
        call.add(|b| b.linear_fp8_layer(rows, weight, output, launch))
    };

    /// ``output = residual + input @ weight.T``, as ``linear_fp8_layer``.
    fn linear_fp8_with_residual_layer(
        input_fp8: TensorHandle, input_scale: TensorHandle, weight_fp8: TensorHandle, weight_scale: TensorHandle,
        residual: TensorHandle, output: TensorHandle; launch
    ) => |call| {
        let (rows, weight) = ([input_fp8, input_scale], [weight_fp8, weight_scale]);
        call.add(|b| b.linear_fp8_with_residual_layer(rows, weight, residual, output, launch))
    };

    /// ``moe_w13_linear_layer`` of 8-bit floats: ``weight_fp8`` is ``[experts, 2 * inner, width]``, and ``weight_scale`` has the
    /// number of experts before its other sizes. The mask is not read.
    fn moe_w13_fp8_layer(
        input_fp8: TensorHandle, input_scale: TensorHandle, weight_fp8: TensorHandle, weight_scale: TensorHandle,
        moe_routing_indices: TensorHandle, moe_mask: Option<TensorHandle>, output: TensorHandle; launch
    ) => |call| {
        let (rows, weight) = ([input_fp8, input_scale], [weight_fp8, weight_scale]);
        call.add(|b| b.moe_w13_fp8_layer(rows, weight, moe_routing_indices, output, launch))
    };

    /// ``moe_w2_linear_layer`` of 8-bit floats: ``weight_fp8`` is ``[experts, width, inner]``, and ``weight_scale`` has the
    /// number of experts before its other sizes. The mask is not read.
    fn moe_w2_fp8_layer(
        input_fp8: TensorHandle, input_scale: TensorHandle, weight_fp8: TensorHandle, weight_scale: TensorHandle,
        moe_routing_indices: TensorHandle, moe_mask: Option<TensorHandle>, output: TensorHandle; launch
    ) => |call| {
        let (rows, weight) = ([input_fp8, input_scale], [weight_fp8, weight_scale]);
        call.add(|b| b.moe_w2_fp8_layer(rows, weight, moe_routing_indices, output, launch))
    };
}
