//! The layer methods of a kernel.

use super::arguments::lookup;
use super::shared::{SharedKernel, wrong};
use super::tensor::PyKernelTensor;
use crate::failure::{PyFailure, PyOutcome};
use crate::log::{Level, say};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;
use yirage_persistent::{
    AttentionInputs, KernelBuilder, KernelDType, LaunchDims, PersistentError, Routing, TensorId, missing_layer,
};

/// The layer methods of a ``PersistentKernel``, by the names and arguments of Mirage.
///
/// Activations are ``[rows, width]`` and float32, whatever is declared; weights of products are ``[outputs, inputs]`` of
/// float32, float16 or bfloat16. All tensors that layers read and write have as many rows. ``grid_dim`` and ``block_dim`` are
/// checked and decide nothing, but where a method says otherwise. A method that raises leaves the kernel as it was.
///
/// Raises:
///     KernelError: sizes that do not fit, a tensor that no layer wrote, a kernel that is compiled.
#[pyclass(frozen, subclass, module = "yirage")]
pub(crate) struct KernelLayers(pub(super) Arc<SharedKernel>);

pub(super) type TensorHandle<'a, 'py> = &'a Bound<'py, PyKernelTensor>;
pub(super) type GridArgument = Option<[u32; 3]>;

pub(super) fn launch(grid: GridArgument, block: GridArgument) -> LaunchDims {
    LaunchDims { grid: grid.unwrap_or(LaunchDims::ONE.grid), block: block.unwrap_or(LaunchDims::ONE.block) }
}

impl KernelLayers {
    pub(super) fn id(&self, tensor: TensorHandle<'_, '_>, what: &str) -> PyOutcome<TensorId> {
        tensor.get().of(&self.0, what)
    }

    pub(super) fn maybe(&self, tensor: Option<TensorHandle<'_, '_>>, what: &str) -> PyOutcome<Option<TensorId>> {
        tensor.map(|tensor| self.id(tensor, what)).transpose()
    }

    /// Two tensors, or three of which the last is Mirage's mask of experts, which nothing here writes.
    fn pair(
        &self,
        py: Python<'_>,
        of: &[Bound<'_, PyKernelTensor>],
        what: &str,
        mask: bool,
    ) -> PyOutcome<[TensorId; 2]> {
        match of {
            [first, second] => Ok([self.id(first, what)?, self.id(second, what)?]),
            [first, second, third] if mask => {
                self.id(third, what)?;
                say(py, Level::Info, &format!("{what}: the mask of experts is neither written nor read here"))?;
                Ok([self.id(first, what)?, self.id(second, what)?])
            }
            _ => Err(wrong(format!("{what}: {} tensors are given, two are wanted", of.len()))),
        }
    }

    /// Adds a layer.
    pub(super) fn layer<const N: usize>(
        &self,
        py: Python<'_>,
        what: &str,
        tensors: [TensorHandle<'_, '_>; N],
        add: impl FnOnce(&mut KernelBuilder, [TensorId; N]) -> Result<(), PersistentError>,
    ) -> PyOutcome<()> {
        let mut ids = Vec::with_capacity(N);
        for tensor in tensors {
            ids.push(self.id(tensor, what)?);
        }
        let ids = <[TensorId; N]>::try_from(ids).map_err(|_| wrong(format!("{what}: {N} tensors are wanted")))?;
        self.0.building(py, what, |builder| Ok(add(builder, ids)?))
    }

    /// One of the three layers of attention.
    fn attend(
        &self,
        py: Python<'_>,
        what: &str,
        [input, k_cache, v_cache]: [TensorHandle<'_, '_>; 3],
        [q_norm, k_norm, cos, sin]: [Option<TensorHandle<'_, '_>>; 4],
        output: TensorHandle<'_, '_>,
        add: impl FnOnce(&mut KernelBuilder, TensorId, AttentionInputs, TensorId) -> Result<(), PersistentError>,
    ) -> PyOutcome<()> {
        let inputs = AttentionInputs {
            k_cache: self.id(k_cache, what)?,
            v_cache: self.id(v_cache, what)?,
            q_norm: self.maybe(q_norm, what)?,
            k_norm: self.maybe(k_norm, what)?,
            cos_pos_embed: self.maybe(cos, what)?,
            sin_pos_embed: self.maybe(sin, what)?,
        };
        self.layer(py, what, [input, output], |b, [x, out]| add(b, x, inputs, out))
    }
}

#[pymethods]
impl KernelLayers {
    /// ``output[t] = weight[id]``: ``weight`` is ``[vocabulary, width]``. The ids of a compiled kernel are the tokens of the
    /// step. In test mode they are those of ``input``: an id for each row, the tokens of all requests, of which those of the
    /// pass are taken, or what a layer wrote; one that nobody wrote stands for ``tokens`` of the metadata. ``input_source`` is
    /// 0 or 1, Mirage's ``tokens`` and ``input_tokens``: the same here.
    #[pyo3(signature = (input, weight, output, grid_dim = None, block_dim = None, input_source = 0))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn embed_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        weight: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        input_source: u32,
    ) -> PyOutcome<()> {
        let launch = launch(grid_dim, block_dim);
        self.layer(py, "embed_layer", [input, weight, output], |b, [x, w, out]| {
            b.embed_layer(x, w, out, input_source, launch)
        })
    }

    /// ``output = input / sqrt(mean(input**2) + rms_norm_eps) * weight``, row by row.
    #[pyo3(signature = (input, weight, output, grid_dim = None, block_dim = None))]
    fn rmsnorm_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        weight: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let launch = launch(grid_dim, block_dim);
        self.layer(py, "rmsnorm_layer", [input, weight, output], |b, [x, w, out]| b.rmsnorm_layer(x, w, out, launch))
    }

    /// ``rmsnorm_layer`` and then ``linear_layer``.
    #[pyo3(signature = (input, weight_norm, weight_linear, output, grid_dim = None, block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn rmsnorm_linear_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        weight_norm: TensorHandle<'_, '_>,
        weight_linear: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let launch = launch(grid_dim, block_dim);
        let tensors = [input, weight_norm, weight_linear, output];
        self.layer(py, "rmsnorm_linear_layer", tensors, |b, [x, n, w, out]| {
            b.rmsnorm_linear_layer(x, n, w, out, launch)
        })
    }

    /// ``output = input @ weight.T``.
    #[pyo3(signature = (input, weight, output, grid_dim = None, block_dim = None))]
    fn linear_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        weight: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let launch = launch(grid_dim, block_dim);
        self.layer(py, "linear_layer", [input, weight, output], |b, [x, w, out]| b.linear_layer(x, w, out, launch))
    }

    /// ``linear_layer``; how the sum is split is the device's decision, and its order that of every other product.
    #[pyo3(signature = (input, weight, output, grid_dim = None, block_dim = None))]
    fn splitk_linear_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        weight: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, tensors) = (launch(grid_dim, block_dim), [input, weight, output]);
        self.layer(py, "splitk_linear_layer", tensors, |b, [x, w, out]| b.splitk_linear_layer(x, w, out, launch))
    }

    /// ``output = residual + input @ weight.T``.
    #[pyo3(signature = (input, weight, residual, output, grid_dim = None, block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn linear_with_residual_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        weight: TensorHandle<'_, '_>,
        residual: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, tensors) = (launch(grid_dim, block_dim), [input, weight, residual, output]);
        self.layer(py, "linear_with_residual_layer", tensors, |b, [x, w, r, out]| {
            b.linear_with_residual_layer(x, w, r, out, launch)
        })
    }

    /// ``output = silu(gate) * up`` of ``[rows, 2 * width]`` with gate before up. Where a fused or shuffled weight made the
    /// input, it has that weight's groups; else ``grid_dim[0]`` says in how many groups gate and up alternate.
    #[pyo3(signature = (input, output, grid_dim = None, block_dim = None))]
    fn silu_mul_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let launch = launch(grid_dim, block_dim);
        self.layer(py, "silu_mul_layer", [input, output], |b, [x, out]| b.silu_mul_layer(x, out, launch))
    }

    /// ``silu_mul_layer`` and then ``linear_with_residual_layer``. Gate stands whole before up, but where a fused or shuffled
    /// weight made the input.
    #[pyo3(signature = (input, weight, residual, output, grid_dim = None, block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn silu_mul_linear_with_residual_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        weight: TensorHandle<'_, '_>,
        residual: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, tensors) = (launch(grid_dim, block_dim), [input, weight, residual, output]);
        self.layer(py, "silu_mul_linear_with_residual_layer", tensors, |b, [x, w, r, out]| {
            b.silu_mul_linear_with_residual_layer(x, w, r, out, launch)
        })
    }

    /// ``output = input``. ``dependent_tensor`` has to be written before; the order of layers says so already.
    #[pyo3(signature = (input, output, grid_dim = None, block_dim = None, dependent_tensor = None))]
    fn identity_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        dependent_tensor: Option<TensorHandle<'_, '_>>,
    ) -> PyOutcome<()> {
        let (launch, before) = (launch(grid_dim, block_dim), self.maybe(dependent_tensor, "identity_layer")?);
        self.layer(py, "identity_layer", [input, output], |b, [x, out]| b.identity_layer(x, out, before, launch))
    }

    /// ``output = input_a + input_b``.
    #[pyo3(signature = (input_a, input_b, output, grid_dim = None, block_dim = None))]
    fn elementwise_add_layer(
        &self,
        py: Python<'_>,
        input_a: TensorHandle<'_, '_>,
        input_b: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, tensors) = (launch(grid_dim, block_dim), [input_a, input_b, output]);
        self.layer(py, "elementwise_add_layer", tensors, |b, [x, y, out]| b.elementwise_add_layer(x, y, out, launch))
    }

    /// The sum of ``input`` over all ranks, added in their order: of one rank ``output = input``. ``buffer`` is
    /// ``[world_size, rows, width]``. ``PersistentKernel.ranks`` joins ranks.
    #[pyo3(signature = (input, buffer, output, grid_dim = None, block_dim = None))]
    fn allreduce_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        buffer: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, tensors) = (launch(grid_dim, block_dim), [input, buffer, output]);
        self.layer(py, "allreduce_layer", tensors, |b, [x, buffer, out]| b.allreduce_layer(x, buffer, out, launch))
    }

    /// Norms of heads, rotation, appending to the cache and causal attention with grouped heads.
    ///
    /// Args:
    ///     input: ``[rows, (heads + 2 * kv_heads) * head_dim]``: for each head of keys its queries, its key, its value, as a
    ///         fused weight makes them.
    ///     k_cache, v_cache: ``[pages, page_size, kv_heads, head_dim]``. In test mode what earlier positions have is read from
    ///         the arrays, and new keys and values are written into them where they lie: the pages of a request stand behind
    ///         those of the one before it. A compiled kernel has pages of its own, of this type, and reads and writes no array.
    ///     q_norm, k_norm: ``[head_dim]``, or both ``None``.
    ///     cos_pos_embed, sin_pos_embed: ``[positions, head_dim]`` with both halves alike, or ``[positions, head_dim / 2]``,
    ///         or both ``None``.
    ///     output: ``[rows, heads * head_dim]``.
    #[pyo3(signature = (input, k_cache, v_cache, q_norm, k_norm, cos_pos_embed, sin_pos_embed, output, grid_dim = None,
        block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn attention_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        k_cache: TensorHandle<'_, '_>,
        v_cache: TensorHandle<'_, '_>,
        q_norm: Option<TensorHandle<'_, '_>>,
        k_norm: Option<TensorHandle<'_, '_>>,
        cos_pos_embed: Option<TensorHandle<'_, '_>>,
        sin_pos_embed: Option<TensorHandle<'_, '_>>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, tables) = (launch(grid_dim, block_dim), [q_norm, k_norm, cos_pos_embed, sin_pos_embed]);
        self.attend(py, "attention_layer", [input, k_cache, v_cache], tables, output, |b, x, inputs, out| {
            b.attention_layer(x, inputs, out, launch)
        })
    }

    /// ``attention_layer`` for several new tokens of one request.
    #[pyo3(signature = (input, k_cache, v_cache, q_norm, k_norm, cos_pos_embed, sin_pos_embed, output, grid_dim = None,
        block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn single_batch_extend_attention_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        k_cache: TensorHandle<'_, '_>,
        v_cache: TensorHandle<'_, '_>,
        q_norm: Option<TensorHandle<'_, '_>>,
        k_norm: Option<TensorHandle<'_, '_>>,
        cos_pos_embed: Option<TensorHandle<'_, '_>>,
        sin_pos_embed: Option<TensorHandle<'_, '_>>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, tables) = (launch(grid_dim, block_dim), [q_norm, k_norm, cos_pos_embed, sin_pos_embed]);
        let what = "single_batch_extend_attention_layer";
        self.attend(py, what, [input, k_cache, v_cache], tables, output, |b, x, inputs, out| {
            b.single_batch_extend_attention_layer(x, inputs, out, launch)
        })
    }

    /// ``attention_layer`` over a cache of pages.
    #[pyo3(signature = (input, k_cache, v_cache, q_norm, k_norm, cos_pos_embed, sin_pos_embed, output, grid_dim = None,
        block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn paged_attention_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        k_cache: TensorHandle<'_, '_>,
        v_cache: TensorHandle<'_, '_>,
        q_norm: Option<TensorHandle<'_, '_>>,
        k_norm: Option<TensorHandle<'_, '_>>,
        cos_pos_embed: Option<TensorHandle<'_, '_>>,
        sin_pos_embed: Option<TensorHandle<'_, '_>>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, tables) = (launch(grid_dim, block_dim), [q_norm, k_norm, cos_pos_embed, sin_pos_embed]);
        self.attend(py, "paged_attention_layer", [input, k_cache, v_cache], tables, output, |b, x, inputs, out| {
            b.paged_attention_layer(x, inputs, out, launch)
        })
    }

    /// Softmax over all experts, the best, their weights divided by their sum. ``input`` is ``[rows, experts]``, ``output``
    /// weights and indices, ``[rows, top_k]`` each; a third tensor, Mirage's mask, stays as it is.
    #[pyo3(signature = (input, output, grid_dim = None, block_dim = None))]
    fn moe_topk_softmax_routing_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        output: Vec<Bound<'_, PyKernelTensor>>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let what = "moe_topk_softmax_routing_layer";
        let (launch, outputs) = (launch(grid_dim, block_dim), self.pair(py, &output, what, true)?);
        self.layer(py, what, [input], |b, [x]| b.moe_topk_softmax_routing_layer(x, outputs, launch))
    }

    /// Sigmoid of each score, the choice by it and ``bias`` (``[experts]`` or ``None``) within the best groups, weights
    /// divided by their sum and scaled.
    #[pyo3(signature = (input, bias, output, grid_dim = None, block_dim = None, num_groups = 8, topk_group = 4,
        routed_scaling_factor = 2.5))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn moe_topk_sigmoid_routing_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        bias: Option<TensorHandle<'_, '_>>,
        output: Vec<Bound<'_, PyKernelTensor>>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        num_groups: u32,
        topk_group: u32,
        routed_scaling_factor: f32,
    ) -> PyOutcome<()> {
        let what = "moe_topk_sigmoid_routing_layer";
        let (launch, outputs) = (launch(grid_dim, block_dim), self.pair(py, &output, what, true)?);
        let (bias, routing) = (self.maybe(bias, what)?, Routing { num_groups, topk_group, routed_scaling_factor });
        self.layer(py, what, [input], |b, [x]| b.moe_topk_sigmoid_routing_layer(x, bias, outputs, routing, launch))
    }

    /// Gate and up of the chosen experts: ``weight`` is ``[experts, 2 * inner, width]`` with the rows of gate first,
    /// ``moe_routing_indices`` the routing's, ``output`` ``[rows, top_k, 2 * inner]``. The mask is not read.
    #[pyo3(signature = (input, weight, moe_routing_indices, moe_mask, output, grid_dim = None, block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn moe_w13_linear_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        weight: TensorHandle<'_, '_>,
        moe_routing_indices: TensorHandle<'_, '_>,
        moe_mask: Option<TensorHandle<'_, '_>>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, what) = (launch(grid_dim, block_dim), "moe_w13_linear_layer");
        self.maybe(moe_mask, what)?;
        self.layer(py, what, [input, weight, moe_routing_indices, output], |b, [x, w, indices, out]| {
            b.moe_w13_linear_layer(x, w, indices, out, launch)
        })
    }

    /// ``silu(gate) * up`` of each chosen expert: ``[rows, top_k, 2 * inner]`` to ``[rows, top_k, inner]``.
    #[pyo3(signature = (input, output, grid_dim = None, block_dim = None))]
    fn moe_silu_mul_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let launch = launch(grid_dim, block_dim);
        self.layer(py, "moe_silu_mul_layer", [input, output], |b, [x, out]| b.moe_silu_mul_layer(x, out, launch))
    }

    /// The way back of the chosen experts: ``input`` is ``[rows, top_k, inner]``, ``weight`` ``[experts, width, inner]``,
    /// ``output`` ``[rows, top_k, width]``. The mask is not read.
    #[pyo3(signature = (input, weight, moe_routing_indices, moe_mask, output, grid_dim = None, block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn moe_w2_linear_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        weight: TensorHandle<'_, '_>,
        moe_routing_indices: TensorHandle<'_, '_>,
        moe_mask: Option<TensorHandle<'_, '_>>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, what) = (launch(grid_dim, block_dim), "moe_w2_linear_layer");
        self.maybe(moe_mask, what)?;
        self.layer(py, what, [input, weight, moe_routing_indices, output], |b, [x, w, indices, out]| {
            b.moe_w2_linear_layer(x, w, indices, out, launch)
        })
    }

    /// ``output = residual + sum of weight[r] * input[r]``: ``input`` is ``[rows, top_k, width]``, ``weight`` the routing's.
    #[pyo3(signature = (input, weight, residual, output, grid_dim = None, block_dim = None))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn moe_mul_sum_add_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        weight: TensorHandle<'_, '_>,
        residual: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, tensors) = (launch(grid_dim, block_dim), [input, weight, residual, output]);
        self.layer(py, "moe_mul_sum_add_layer", tensors, |b, [x, w, r, out]| {
            b.moe_mul_sum_add_layer(x, w, r, out, launch)
        })
    }

    /// ``output[t]`` is the index of the largest of ``input[t]``, the first of equals: the token that follows.
    #[pyo3(signature = (input, output, grid_dim = None, block_dim = None))]
    fn argmax_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let launch = launch(grid_dim, block_dim);
        self.layer(py, "argmax_layer", [input, output], |b, [x, out]| b.argmax_layer(x, out, launch))
    }

    /// The first half of ``argmax_layer``: ``output`` is largest values and their indices. The two are one thing here,
    /// which only ``argmax_reduce_layer`` reads.
    #[pyo3(signature = (input, output, grid_dim = None, block_dim = None))]
    fn argmax_partial_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        output: Vec<Bound<'_, PyKernelTensor>>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let what = "argmax_partial_layer";
        let (launch, outputs) = (launch(grid_dim, block_dim), self.pair(py, &output, what, false)?);
        self.layer(py, what, [input], |b, [x]| b.argmax_partial_layer(x, outputs, launch))
    }

    /// The second half of ``argmax_layer``.
    #[pyo3(signature = (input, output, grid_dim = None, block_dim = None))]
    fn argmax_reduce_layer(
        &self,
        py: Python<'_>,
        input: Vec<Bound<'_, PyKernelTensor>>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let what = "argmax_reduce_layer";
        let (launch, inputs) = (launch(grid_dim, block_dim), self.pair(py, &input, what, false)?);
        self.layer(py, what, [output], |b, [out]| b.argmax_reduce_layer(inputs, out, launch))
    }

    /// ``output[t]`` is a token that is drawn by the kernel's ``sampling_params`` and this seed. Each request draws numbers
    /// of its own, whatever runs beside it.
    #[pyo3(signature = (logits, output, grid_dim = None, block_dim = None, seed = 42))]
    fn sampling_layer(
        &self,
        py: Python<'_>,
        logits: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        seed: u64,
    ) -> PyOutcome<()> {
        let launch = launch(grid_dim, block_dim);
        self.layer(py, "sampling_layer", [logits, output], |b, [x, out]| b.sampling_layer(x, out, seed, launch))
    }

    /// ``sampling_layer`` by the name that Mirage has for one kind of GPU.
    #[pyo3(signature = (logits, output, grid_dim = None, block_dim = None, seed = 42))]
    fn sampling_sm100_layer(
        &self,
        py: Python<'_>,
        logits: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        seed: u64,
    ) -> PyOutcome<()> {
        self.sampling_layer(py, logits, output, grid_dim, block_dim, seed)
    }

    /// The first half of ``find_ngram_global_layer``.
    #[pyo3(signature = (input, output, grid_dim = None, block_dim = None, ngram_size = 3))]
    fn find_ngram_partial_layer(
        &self,
        py: Python<'_>,
        input: TensorHandle<'_, '_>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        ngram_size: u32,
    ) -> PyOutcome<()> {
        let (launch, what) = (launch(grid_dim, block_dim), "find_ngram_partial_layer");
        self.layer(py, what, [input, output], |b, [x, out]| b.find_ngram_partial_layer(x, out, ngram_size, launch))
    }

    /// Guesses: ``output`` is int64 ``[requests, spec_length + 1]``, the last token and what followed the first earlier place
    /// of the last ``ngram_size`` tokens of each request, -1 where there is none. ``input`` is what the first half wrote, and
    /// the tokens, which are read in test mode. A compiled kernel then guesses in each step, from those of its metadata.
    #[pyo3(signature = (input, output, grid_dim = None, block_dim = None, ngram_size = 3, spec_length = 5))]
    #[expect(clippy::too_many_arguments, reason = "Mirage's")]
    fn find_ngram_global_layer(
        &self,
        py: Python<'_>,
        input: Vec<Bound<'_, PyKernelTensor>>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
        ngram_size: u32,
        spec_length: u32,
    ) -> PyOutcome<()> {
        let (launch, what) = (launch(grid_dim, block_dim), "find_ngram_global_layer");
        let [_, tokens] = self.pair(py, &input, what, false)?;
        self.layer(py, what, [output], |b, [out]| {
            b.find_ngram_global_layer(tokens, out, ngram_size, spec_length, launch)
        })
    }

    /// Guesses by a ``PromptLookupConfig``: the tensor ``spec_tokens``, int64 ``[requests, spec_length + 1]``.
    #[pyo3(signature = (spec_decode_config, tokens, grid_dim = None, block_dim = None))]
    fn prompt_lookup_spec_handler(
        &self,
        py: Python<'_>,
        spec_decode_config: &Bound<'_, PyAny>,
        tokens: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<PyKernelTensor> {
        let (launch, what) = (launch(grid_dim, block_dim), "prompt_lookup_spec_handler");
        let (lookup, tokens) = (lookup(spec_decode_config)?, self.id(tokens, what)?);
        self.0.building(py, what, |builder| {
            let id = builder.prompt_lookup_spec_handler(lookup, tokens, launch)?;
            PyKernelTensor::shown(&self.0, builder, id, "spec_tokens")
        })
    }

    /// ``prompt_lookup_spec_handler``: prompts are the only place where guesses come from.
    #[pyo3(signature = (spec_decode_config, tokens, grid_dim = None, block_dim = None))]
    fn draft_forward_layer_dispatcher(
        &self,
        py: Python<'_>,
        spec_decode_config: &Bound<'_, PyAny>,
        tokens: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<PyKernelTensor> {
        self.prompt_lookup_spec_handler(py, spec_decode_config, tokens, grid_dim, block_dim)
    }

    /// Takes the longest prefix of the guesses that the target's own tokens confirm, and one token more: what greedy
    /// decoding gives. ``input`` is guesses and targets, ``output`` int64 ``[requests, 2]``: how many guesses were right, and
    /// the token behind them. A compiled kernel verifies in each step.
    #[pyo3(signature = (input, output, grid_dim = None, block_dim = None))]
    fn target_verify_greedy_layer(
        &self,
        py: Python<'_>,
        input: Vec<Bound<'_, PyKernelTensor>>,
        output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<()> {
        let (launch, what) = (launch(grid_dim, block_dim), "target_verify_greedy_layer");
        let [guesses, targets] = self.pair(py, &input, what, false)?;
        self.layer(py, what, [output], |b, [out]| b.target_verify_greedy_layer(guesses, targets, out, launch))
    }

    /// ``target_verify_greedy_layer`` into a tensor of its own, ``verify_out``.
    #[pyo3(signature = (spec_decode_config, spec_tokens, target_output, grid_dim = None, block_dim = None))]
    fn prompt_lookup_verify_handler(
        &self,
        py: Python<'_>,
        spec_decode_config: &Bound<'_, PyAny>,
        spec_tokens: TensorHandle<'_, '_>,
        target_output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<PyKernelTensor> {
        let (launch, what) = (launch(grid_dim, block_dim), "prompt_lookup_verify_handler");
        lookup(spec_decode_config)?;
        let (guesses, targets) = (self.id(spec_tokens, what)?, self.id(target_output, what)?);
        self.0.building(py, what, |builder| {
            let requests = builder.meta().requests() as u32;
            let id = builder.new_tensor(&[requests, 2], KernelDType::Int64, "verify_out")?;
            builder.target_verify_greedy_layer(guesses, targets, id, launch)?;
            PyKernelTensor::shown(&self.0, builder, id, "verify_out")
        })
    }

    /// ``prompt_lookup_verify_handler``.
    #[pyo3(signature = (spec_decode_config, spec_tokens, target_output, grid_dim = None, block_dim = None))]
    fn verify_layer_dispatcher(
        &self,
        py: Python<'_>,
        spec_decode_config: &Bound<'_, PyAny>,
        spec_tokens: TensorHandle<'_, '_>,
        target_output: TensorHandle<'_, '_>,
        grid_dim: GridArgument,
        block_dim: GridArgument,
    ) -> PyOutcome<PyKernelTensor> {
        self.prompt_lookup_verify_handler(py, spec_decode_config, spec_tokens, target_output, grid_dim, block_dim)
    }

    /// Mirage's layer methods that are not here: they raise ``Unsupported`` when they are called, with the reason.
    fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyOutcome<MissingLayer> {
        if missing_layer(name).is_some() {
            return Ok(MissingLayer(name.to_owned()));
        }
        let class = slf.get_type().name()?;
        Err(PyFailure::Raised(PyAttributeError::new_err(format!("'{class}' object has no attribute '{name}'"))))
    }
}

/// A layer method of Mirage's that is not here.
#[pyclass(frozen, module = "yirage")]
struct MissingLayer(String);

#[pymethods]
impl MissingLayer {
    #[pyo3(signature = (*_arguments, **_named))]
    fn __call__(&self, _arguments: &Bound<'_, PyTuple>, _named: Option<&Bound<'_, PyDict>>) -> PyOutcome<()> {
        missing_layer(&self.0).map_or(Ok(()), |error| Err(error.into()))
    }
}
