//! The layer methods of DeepSeek's models: latent attention, a matrix for each head, and weights of 8-bit floats.
//!
//! Names, order and tuples are Mirage's where it has such a layer. This file knows no sizes of tensors: `KernelBuilder` has
//! them, and numbers of a tuple are held against it.

use super::layers::{GridArgument, KernelLayers, TensorHandle, launch};
use super::shared::wrong;
use crate::failure::PyOutcome;
use pyo3::prelude::*;
use yirage_persistent::{KernelBuilder, LatentAttention, PersistentError, TensorId};

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

/// Sizes of DeepSeek-V3, which Mirage's layers without a tuple have.
const HEADS: u32 = 128;
const D_K: u32 = 576;
const D_V: u32 = 512;

/// The factor of scores that Mirage's kernels have: of DeepSeek-V3, whose heads have 128 + 64 elements and whose positions are
/// stretched 40 times by YaRN (arXiv 2309.00071).
fn scale_of_mirage() -> f32 {
    ((0.1 * 40f64.ln() + 1.0).powi(2) / 192f64.sqrt()) as f32
}

fn layers<'a>(slf: &'a Bound<'_, LatentLayers>) -> &'a KernelLayers {
    slf.as_super().get()
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

/// The first half of attention over several new tokens of a request, by any of its names.
fn mtp_decode(
    slf: &Bound<'_, LatentLayers>,
    what: &'static str,
    tensors: [TensorHandle<'_, '_>; 4],
    [q_len, kv_len]: [u32; 2],
    sizes: [u32; 3],
    softmax_scale: Option<f32>,
) -> PyOutcome<()> {
    lengths(what, &[("q_len", q_len), ("kv_len", kv_len)])?;
    let attention = attention(what, sizes, softmax_scale)?;
    layers(slf).0.tell_once(slf.py(), SPLITS)?;
    layers(slf).layer(slf.py(), what, tensors, |b, [q, kv, partial, lse]| {
        b.mla_mtp_decode_layer(q, kv, [partial, lse], attention, launch(None, None))
    })
}

/// Its second half.
fn mtp_reduce(
    slf: &Bound<'_, LatentLayers>,
    what: &'static str,
    tensors: [TensorHandle<'_, '_>; 3],
    [q_len, kv_len]: [u32; 2],
) -> PyOutcome<()> {
    lengths(what, &[("q_len", q_len), ("kv_len", kv_len)])?;
    layers(slf).0.tell_once(slf.py(), SPLITS)?;
    layers(slf).layer(slf.py(), what, tensors, |b, [partial, lse, out]| {
        b.mla_mtp_reduce_layer([partial, lse], out, launch(None, None))
    })
}

#[pymethods]
impl LatentLayers {
    /// Each head's part of a row by a matrix of its own: ``input`` is ``[rows, heads * columns]``, ``weight``
    /// ``[heads, rows_of_weight, columns]``, ``output`` ``[rows, heads * rows_of_weight]``.
    #[pyo3(signature = (input, weight, output, grid_dim = None, block_dim = None))]
    fn linear_bmm_layer(
        slf: &Bound<'_, Self>,
        input: TensorHandle<'_, '_>,
        weight: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let launch = launch(grid_dim, block_dim);
        layers(slf).layer(slf.py(), "linear_bmm_layer", [input, weight, output], |b, [x, w, out]| {
            b.linear_bmm_layer(x, w, out, launch)
        })
    }

    /// Rotates every head of ``input``, ``[rows, heads * width]``, by its position. Tables are ``[positions, width]`` with both
    /// halves alike, or ``[positions, width / 2]``. Pairs are neighbours where ``interleaved``, as in DeepSeek's checkpoints,
    /// and halves otherwise.
    #[pyo3(signature = (input, cos_pos_embed, sin_pos_embed, output, width, grid_dim = None, block_dim = None, *,
        interleaved = true))]
    #[expect(clippy::too_many_arguments, reason = "as of Mirage's layers of attention")]
    fn mla_rope_layer(
        slf: &Bound<'_, Self>,
        input: TensorHandle<'_, '_>,
        cos_pos_embed: TensorHandle<'_, '_>,
        sin_pos_embed: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        width: u32,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        interleaved: bool,
    ) -> PyOutcome<()> {
        let (launch, tensors) = (launch(grid_dim, block_dim), [input, cos_pos_embed, sin_pos_embed, output]);
        layers(slf).layer(slf.py(), "mla_rope_layer", tensors, |b, [x, cos, sin, out]| {
            b.mla_rope_layer(x, [cos, sin], out, width, interleaved, launch)
        })
    }

    /// Both parts of each head's query beside each other: ``q_nope`` is ``[rows, num_heads * d_v]``, ``q_pe``
    /// ``[rows, num_heads * d_kpe]``, ``output`` ``[rows, num_heads * (d_v + d_kpe)]``.
    #[pyo3(signature = (q_nope, q_pe, output, num_heads, grid_dim = None, block_dim = None))]
    fn assemble_q_decode_layer(
        slf: &Bound<'_, Self>,
        q_nope: TensorHandle<'_, '_>,
        q_pe: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        num_heads: u32,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, tensors) = (launch(grid_dim, block_dim), [q_nope, q_pe, output]);
        layers(slf).layer(slf.py(), "assemble_q_decode_layer", tensors, |b, [nope, rope, out]| {
            b.assemble_q_decode_layer([nope, rope], out, num_heads, launch)
        })
    }

    /// Appends to the cache: ``c_latent_new`` is ``[rows, d_v]`` behind its norm, ``k_pe_new`` ``[rows, d_k - d_v]`` rotated,
    /// ``paged_cache`` ``[pages, page_size, d_k]``, as of ``paged_attention_layer``. ``contiguous_kv`` stands for the
    /// cache, and only layers of latent attention read it.
    ///
    /// Args:
    ///     mla_params: ``(d_k, d_v, page_size)``.
    #[pyo3(signature = (c_latent_new, k_pe_new, paged_cache, contiguous_kv, mla_params, grid_dim = None, block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn mla_kv_gather_layer(
        slf: &Bound<'_, Self>,
        c_latent_new: TensorHandle<'_, '_>,
        k_pe_new: TensorHandle<'_, '_>,
        paged_cache: TensorHandle<'_, '_>,
        contiguous_kv: TensorHandle<'_, '_>,
        mla_params: Vec<u32>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (what, launch) = ("mla_kv_gather_layer", launch(grid_dim, block_dim));
        let sizes = numbers(what, &mla_params, ["d_k", "d_v", "page_size"])?;
        let tensors = [c_latent_new, k_pe_new, paged_cache, contiguous_kv];
        layers(slf).layer(slf.py(), what, tensors, |b, [row, key, cache, kv]| {
            gathers(what, b, [row, key, cache], sizes)?;
            b.mla_kv_gather_layer(row, key, cache, kv, launch)
        })
    }

    /// ``mla_kv_gather_layer`` with an output for the compressed rows and one for the rotated keys, which
    /// ``mla_prefill_layer`` reads together.
    ///
    /// Args:
    ///     mla_params: ``(d_k, d_v, page_size)``.
    #[pyo3(signature = (c_latent_new, k_pe_new, paged_cache, ckv_sep, kpe_sep, mla_params, grid_dim = None,
        block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn mla_kv_gather_split_layer(
        slf: &Bound<'_, Self>,
        c_latent_new: TensorHandle<'_, '_>,
        k_pe_new: TensorHandle<'_, '_>,
        paged_cache: TensorHandle<'_, '_>,
        ckv_sep: TensorHandle<'_, '_>,
        kpe_sep: TensorHandle<'_, '_>,
        mla_params: Vec<u32>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (what, launch) = ("mla_kv_gather_split_layer", launch(grid_dim, block_dim));
        let sizes = numbers(what, &mla_params, ["d_k", "d_v", "page_size"])?;
        let tensors = [c_latent_new, k_pe_new, paged_cache, ckv_sep, kpe_sep];
        layers(slf).layer(slf.py(), what, tensors, |b, [row, key, cache, ckv, kpe]| {
            gathers(what, b, [row, key, cache], sizes)?;
            b.mla_kv_gather_split_layer(row, key, cache, [ckv, kpe], launch)
        })
    }

    /// Attention of ``q_input``, ``[rows, num_heads * d_k]``, over what ``kv_input`` stands for. ``output_partial`` and
    /// ``output_lse``, parts of results and their sums of weights in Mirage, stand for the results here, and only
    /// ``mla_reduce_layer`` reads them. They may have as many rows as there are splits.
    ///
    /// Args:
    ///     mla_params: ``(num_heads, d_k, d_v, num_splits, kv_len)``, with ``q_len`` behind them or without it.
    #[pyo3(signature = (q_input, kv_input, output_partial, output_lse, mla_params, grid_dim = None, block_dim = None,
        q_len = 1, *, softmax_scale = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn mla_decode_layer(
        slf: &Bound<'_, Self>,
        q_input: TensorHandle<'_, '_>,
        kv_input: TensorHandle<'_, '_>,
        output_partial: TensorHandle<'_, '_>,
        output_lse: TensorHandle<'_, '_>,
        mla_params: Vec<u32>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        q_len: u32,
        softmax_scale: Option<f32>,
    ) -> PyOutcome<()> {
        let (what, launch) = ("mla_decode_layer", launch(grid_dim, block_dim));
        let names = ["num_heads", "d_k", "d_v", "num_splits", "kv_len"];
        let [num_heads, d_k, d_v, num_splits, kv_len] = with_length(what, &mla_params, names, q_len)?;
        lengths(what, &[("num_splits", num_splits), ("kv_len", kv_len)])?;
        let attention = attention(what, [num_heads, d_k, d_v], softmax_scale)?;
        layers(slf).0.tell_once(slf.py(), SPLITS)?;
        let tensors = [q_input, kv_input, output_partial, output_lse];
        layers(slf).layer(slf.py(), what, tensors, |b, [q, kv, partial, lse]| {
            b.mla_decode_layer(q, kv, [partial, lse], attention, launch)
        })
    }

    /// The second half of ``mla_decode_layer``: ``output`` is ``[rows, num_heads * d_v]``, all columns of it.
    ///
    /// Args:
    ///     mla_params: ``(num_heads, d_v, num_splits, d_start, d_count)``, with ``q_len`` behind them or without it.
    #[pyo3(signature = (input_partial, input_lse, output, mla_params, grid_dim = None, block_dim = None, q_len = 1))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn mla_reduce_layer(
        slf: &Bound<'_, Self>,
        input_partial: TensorHandle<'_, '_>,
        input_lse: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        mla_params: Vec<u32>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        q_len: u32,
    ) -> PyOutcome<()> {
        let (what, launch) = ("mla_reduce_layer", launch(grid_dim, block_dim));
        let names = ["num_heads", "d_v", "num_splits", "d_start", "d_count"];
        let [num_heads, d_v, num_splits, d_start, d_count] = with_length(what, &mla_params, names, q_len)?;
        lengths(what, &[("num_splits", num_splits), ("d_count", d_count)])?;
        if d_start.checked_add(d_count).is_none_or(|end| end > d_v) {
            return Err(wrong(format!(
                "{what}: {d_count} columns from {d_start} on are not within d_v, which is {d_v}"
            )));
        }
        layers(slf).0.tell_once(slf.py(), SPLITS)?;
        layers(slf).layer(slf.py(), what, [input_partial, input_lse, output], |b, [partial, lse, out]| {
            agree(what, "num_heads * d_v", num_heads.saturating_mul(d_v), width(b, out)?)?;
            b.mla_reduce_layer([partial, lse], out, launch)
        })
    }

    /// ``mla_decode_layer`` for several new tokens of a request. Mirage has it for the sizes of DeepSeek-V3 alone, which are
    /// the defaults of the three last numbers.
    #[pyo3(signature = (q_input, kv_input, output_partial, output_lse, q_len, kv_len, *, num_heads = HEADS, d_k = D_K,
        d_v = D_V, softmax_scale = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's, and its fixed sizes")]
    fn mla_mtp_decode_layer(
        slf: &Bound<'_, Self>,
        q_input: TensorHandle<'_, '_>,
        kv_input: TensorHandle<'_, '_>,
        output_partial: TensorHandle<'_, '_>,
        output_lse: TensorHandle<'_, '_>,
        q_len: u32,
        kv_len: u32,
        num_heads: u32,
        d_k: u32,
        d_v: u32,
        softmax_scale: Option<f32>,
    ) -> PyOutcome<()> {
        let (what, tensors) = ("mla_mtp_decode_layer", [q_input, kv_input, output_partial, output_lse]);
        mtp_decode(slf, what, tensors, [q_len, kv_len], [num_heads, d_k, d_v], softmax_scale)
    }

    /// The second half of ``mla_mtp_decode_layer``: ``output`` is ``[rows, num_heads * d_v]``.
    #[pyo3(signature = (input_partial, input_lse, output, q_len, kv_len))]
    fn mla_mtp_reduce_layer(
        slf: &Bound<'_, Self>,
        input_partial: TensorHandle<'_, '_>,
        input_lse: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        q_len: u32,
        kv_len: u32,
    ) -> PyOutcome<()> {
        mtp_reduce(slf, "mla_mtp_reduce_layer", [input_partial, input_lse, output], [q_len, kv_len])
    }

    /// ``mla_mtp_decode_layer`` of one of 2 ranks, which has 64 of DeepSeek-V3's heads.
    #[pyo3(signature = (q_input, kv_input, output_partial, output_lse, q_len, kv_len, *, num_heads = HEADS / 2, d_k = D_K,
        d_v = D_V, softmax_scale = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's, and its fixed sizes")]
    fn mla_mtp_decode_tp2_layer(
        slf: &Bound<'_, Self>,
        q_input: TensorHandle<'_, '_>,
        kv_input: TensorHandle<'_, '_>,
        output_partial: TensorHandle<'_, '_>,
        output_lse: TensorHandle<'_, '_>,
        q_len: u32,
        kv_len: u32,
        num_heads: u32,
        d_k: u32,
        d_v: u32,
        softmax_scale: Option<f32>,
    ) -> PyOutcome<()> {
        let (what, tensors) = ("mla_mtp_decode_tp2_layer", [q_input, kv_input, output_partial, output_lse]);
        mtp_decode(slf, what, tensors, [q_len, kv_len], [num_heads, d_k, d_v], softmax_scale)
    }

    /// The second half of ``mla_mtp_decode_tp2_layer``.
    #[pyo3(signature = (input_partial, input_lse, output, q_len, kv_len))]
    fn mla_mtp_decode_tp2_reduce_layer(
        slf: &Bound<'_, Self>,
        input_partial: TensorHandle<'_, '_>,
        input_lse: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        q_len: u32,
        kv_len: u32,
    ) -> PyOutcome<()> {
        mtp_reduce(slf, "mla_mtp_decode_tp2_reduce_layer", [input_partial, input_lse, output], [q_len, kv_len])
    }

    /// ``mla_mtp_decode_layer`` of one of 4 ranks, which has 32 of DeepSeek-V3's heads.
    #[pyo3(signature = (q_input, kv_input, output_partial, output_lse, q_len, kv_len, *, num_heads = HEADS / 4, d_k = D_K,
        d_v = D_V, softmax_scale = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's, and its fixed sizes")]
    fn mla_mtp_decode_tp4_layer(
        slf: &Bound<'_, Self>,
        q_input: TensorHandle<'_, '_>,
        kv_input: TensorHandle<'_, '_>,
        output_partial: TensorHandle<'_, '_>,
        output_lse: TensorHandle<'_, '_>,
        q_len: u32,
        kv_len: u32,
        num_heads: u32,
        d_k: u32,
        d_v: u32,
        softmax_scale: Option<f32>,
    ) -> PyOutcome<()> {
        let (what, tensors) = ("mla_mtp_decode_tp4_layer", [q_input, kv_input, output_partial, output_lse]);
        mtp_decode(slf, what, tensors, [q_len, kv_len], [num_heads, d_k, d_v], softmax_scale)
    }

    /// The second half of ``mla_mtp_decode_tp4_layer``.
    #[pyo3(signature = (input_partial, input_lse, output, q_len, kv_len))]
    fn mla_mtp_decode_tp4_reduce_layer(
        slf: &Bound<'_, Self>,
        input_partial: TensorHandle<'_, '_>,
        input_lse: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        q_len: u32,
        kv_len: u32,
    ) -> PyOutcome<()> {
        mtp_reduce(slf, "mla_mtp_decode_tp4_reduce_layer", [input_partial, input_lse, output], [q_len, kv_len])
    }

    /// ``mla_mtp_decode_layer`` of one of 8 ranks, which has 16 of DeepSeek-V3's heads.
    #[pyo3(signature = (q_input, kv_input, output_partial, output_lse, q_len_real, kv_len, *, num_heads = HEADS / 8, d_k = D_K,
        d_v = D_V, softmax_scale = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's, and its fixed sizes")]
    fn mla_mtp_decode_tp8_layer(
        slf: &Bound<'_, Self>,
        q_input: TensorHandle<'_, '_>,
        kv_input: TensorHandle<'_, '_>,
        output_partial: TensorHandle<'_, '_>,
        output_lse: TensorHandle<'_, '_>,
        q_len_real: u32,
        kv_len: u32,
        num_heads: u32,
        d_k: u32,
        d_v: u32,
        softmax_scale: Option<f32>,
    ) -> PyOutcome<()> {
        let (what, tensors) = ("mla_mtp_decode_tp8_layer", [q_input, kv_input, output_partial, output_lse]);
        mtp_decode(slf, what, tensors, [q_len_real, kv_len], [num_heads, d_k, d_v], softmax_scale)
    }

    /// The second half of ``mla_mtp_decode_tp8_layer``.
    #[pyo3(signature = (input_partial, input_lse, output, q_len_real, kv_len))]
    fn mla_mtp_decode_tp8_reduce_layer(
        slf: &Bound<'_, Self>,
        input_partial: TensorHandle<'_, '_>,
        input_lse: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        q_len_real: u32,
        kv_len: u32,
    ) -> PyOutcome<()> {
        mtp_reduce(slf, "mla_mtp_decode_tp8_reduce_layer", [input_partial, input_lse, output], [q_len_real, kv_len])
    }

    /// Attention of queries in two parts, ``[rows, num_heads * d_ckv]`` and ``[rows, num_heads * d_kpe]``, over what ``ckv``
    /// and ``kpe`` of one ``mla_kv_gather_split_layer`` stand for. ``output`` is ``[rows, num_heads * d_v]``.
    ///
    /// Args:
    ///     mla_params: ``(num_heads, seq_len, d_ckv, d_kpe, d_v)``; ``d_v`` is ``d_ckv``.
    #[pyo3(signature = (q_nope, q_pe, ckv, kpe, output, mla_params, grid_dim = None, block_dim = None, *,
        softmax_scale = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn mla_prefill_layer(
        slf: &Bound<'_, Self>,
        q_nope: TensorHandle<'_, '_>,
        q_pe: TensorHandle<'_, '_>,
        ckv: TensorHandle<'_, '_>,
        kpe: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        mla_params: Vec<u32>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        softmax_scale: Option<f32>,
    ) -> PyOutcome<()> {
        let (what, launch) = ("mla_prefill_layer", launch(grid_dim, block_dim));
        let attention = attention(what, prefill(what, &mla_params)?, softmax_scale)?;
        layers(slf).0.tell_once(slf.py(), SPLITS)?;
        let tensors = [q_nope, q_pe, ckv, kpe, output];
        layers(slf).layer(slf.py(), what, tensors, |b, [nope, rope, ckv, kpe, out]| {
            b.mla_prefill_layer([nope, rope], [ckv, kpe], out, attention, launch)
        })
    }

    /// ``mla_prefill_layer`` with both parts of each query beside each other, ``[rows, num_heads * (d_ckv + d_kpe)]``, over
    /// what ``kv`` of a ``mla_kv_gather_layer`` stands for.
    ///
    /// Args:
    ///     mla_params: ``(num_heads, seq_len, d_ckv, d_kpe, d_v)``; ``d_v`` is ``d_ckv``.
    #[pyo3(signature = (q, kv, output, mla_params, grid_dim = None, block_dim = None, *, softmax_scale = None))]
    #[expect(clippy::too_many_arguments, reason = "as of mla_prefill_layer")]
    fn mla_prefill_absorbed_layer(
        slf: &Bound<'_, Self>,
        q: TensorHandle<'_, '_>,
        kv: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        mla_params: Vec<u32>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        softmax_scale: Option<f32>,
    ) -> PyOutcome<()> {
        let (what, launch) = ("mla_prefill_absorbed_layer", launch(grid_dim, block_dim));
        let attention = attention(what, prefill(what, &mla_params)?, softmax_scale)?;
        layers(slf).0.tell_once(slf.py(), SPLITS)?;
        layers(slf).layer(slf.py(), what, [q, kv, output], |b, [q, kv, out]| {
            b.mla_prefill_absorbed_layer(q, kv, out, attention, launch)
        })
    }

    /// Rows for layers of 8-bit floats: ``output_fp8`` stands for ``input`` and ``output_scale`` for its scales, which only
    /// those layers read. Nothing is rounded.
    #[pyo3(signature = (input, output_fp8, output_scale, grid_dim = None, block_dim = None, scale_ue8m0 = true))]
    fn quantize_fp8_layer(
        slf: &Bound<'_, Self>,
        input: TensorHandle<'_, '_>,
        output_fp8: TensorHandle<'_, '_>,
        output_scale: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        scale_ue8m0: bool,
    ) -> PyOutcome<()> {
        let launch = launch(grid_dim, block_dim);
        if !scale_ue8m0 {
            layers(slf).0.tell_once(slf.py(), SCALES)?;
        }
        layers(slf).layer(slf.py(), "quantize_fp8_layer", [input, output_fp8, output_scale], |b, [x, out, scale]| {
            b.quantize_fp8_layer(x, [out, scale], launch)
        })
    }

    /// ``output = input @ weight.T``: ``input_fp8`` and ``input_scale`` are those of one ``quantize_fp8_layer``, ``weight_fp8``
    /// is ``[n, k]`` of float8_e4m3fn. ``weight_scale`` has floats for blocks of 128 columns and 128 rows,
    /// ``[n / 128, k / 128]`` rounded up, or one row, ``[n, k / 128]``; or int32 ``[n, k / 512]`` with four exponents E8M0 in
    /// each, the first one lowest.
    #[pyo3(signature = (input_fp8, input_scale, weight_fp8, weight_scale, output, grid_dim = None, block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn linear_fp8_layer(
        slf: &Bound<'_, Self>,
        input_fp8: TensorHandle<'_, '_>,
        input_scale: TensorHandle<'_, '_>,
        weight_fp8: TensorHandle<'_, '_>,
        weight_scale: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let launch = launch(grid_dim, block_dim);
        let tensors = [input_fp8, input_scale, weight_fp8, weight_scale, output];
        layers(slf).layer(slf.py(), "linear_fp8_layer", tensors, |b, [x, scale, w, scales, out]| {
            b.linear_fp8_layer([x, scale], [w, scales], out, launch)
        })
    }

    /// ``output = residual + input @ weight.T``, as ``linear_fp8_layer``.
    #[pyo3(signature = (input_fp8, input_scale, weight_fp8, weight_scale, residual, output, grid_dim = None,
        block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn linear_fp8_with_residual_layer(
        slf: &Bound<'_, Self>,
        input_fp8: TensorHandle<'_, '_>,
        input_scale: TensorHandle<'_, '_>,
        weight_fp8: TensorHandle<'_, '_>,
        weight_scale: TensorHandle<'_, '_>,
        residual: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (what, launch) = ("linear_fp8_with_residual_layer", launch(grid_dim, block_dim));
        let tensors = [input_fp8, input_scale, weight_fp8, weight_scale, residual, output];
        layers(slf).layer(slf.py(), what, tensors, |b, [x, scale, w, scales, residual, out]| {
            b.linear_fp8_with_residual_layer([x, scale], [w, scales], residual, out, launch)
        })
    }

    /// ``moe_w13_linear_layer`` of 8-bit floats: ``weight_fp8`` is ``[experts, 2 * inner, width]``, and ``weight_scale`` has the
    /// number of experts before its other sizes. The mask is not read.
    #[pyo3(signature = (input_fp8, input_scale, weight_fp8, weight_scale, moe_routing_indices, moe_mask, output,
        grid_dim = None, block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn moe_w13_fp8_layer(
        slf: &Bound<'_, Self>,
        input_fp8: TensorHandle<'_, '_>,
        input_scale: TensorHandle<'_, '_>,
        weight_fp8: TensorHandle<'_, '_>,
        weight_scale: TensorHandle<'_, '_>,
        moe_routing_indices: TensorHandle<'_, '_>,
        moe_mask: Option<TensorHandle<'_, '_>>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (what, launch) = ("moe_w13_fp8_layer", launch(grid_dim, block_dim));
        layers(slf).maybe(moe_mask, what)?;
        let tensors = [input_fp8, input_scale, weight_fp8, weight_scale, moe_routing_indices, output];
        layers(slf).layer(slf.py(), what, tensors, |b, [x, scale, w, scales, indices, out]| {
            b.moe_w13_fp8_layer([x, scale], [w, scales], indices, out, launch)
        })
    }

    /// ``moe_w2_linear_layer`` of 8-bit floats: ``weight_fp8`` is ``[experts, width, inner]``, and ``weight_scale`` has the
    /// number of experts before its other sizes. The mask is not read.
    #[pyo3(signature = (input_fp8, input_scale, weight_fp8, weight_scale, moe_routing_indices, moe_mask, output,
        grid_dim = None, block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn moe_w2_fp8_layer(
        slf: &Bound<'_, Self>,
        input_fp8: TensorHandle<'_, '_>,
        input_scale: TensorHandle<'_, '_>,
        weight_fp8: TensorHandle<'_, '_>,
        weight_scale: TensorHandle<'_, '_>,
        moe_routing_indices: TensorHandle<'_, '_>,
        moe_mask: Option<TensorHandle<'_, '_>>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (what, launch) = ("moe_w2_fp8_layer", launch(grid_dim, block_dim));
        layers(slf).maybe(moe_mask, what)?;
        let tensors = [input_fp8, input_scale, weight_fp8, weight_scale, moe_routing_indices, output];
        layers(slf).layer(slf.py(), what, tensors, |b, [x, scale, w, scales, indices, out]| {
            b.moe_w2_fp8_layer([x, scale], [w, scales], indices, out, launch)
        })
    }
}
