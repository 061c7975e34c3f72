//! The layer methods of a kernel, one a row.

use super::arguments::lookup;
use super::shared::SharedKernel;
use super::table::{GridArgument, LayerCall, RoutingPair, TensorHandle, TensorPair, launch};
use super::tensor::PyKernelTensor;
use crate::failure::{PyFailure, PyOutcome};
use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::Arc;
use yirage_persistent::{AttentionInputs, KernelDType, LaunchDims, Routing, TensorId, missing_layer};

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

/// What attention reads beside its input.
fn attended([k_cache, v_cache]: [TensorId; 2], tables: [Option<TensorId>; 4]) -> AttentionInputs {
    let [q_norm, k_norm, cos_pos_embed, sin_pos_embed] = tables;
    AttentionInputs { k_cache, v_cache, q_norm, k_norm, cos_pos_embed, sin_pos_embed }
}

/// Guesses from the prompt, by either of its names.
fn guess(
    call: &LayerCall<'_, '_>,
    spec_decode_config: &Py<PyAny>,
    tokens: TensorId,
    launch: LaunchDims,
) -> PyOutcome<PyKernelTensor> {
    let lookup = lookup(spec_decode_config.bind(call.py))?;
    call.make("spec_tokens", |b| b.prompt_lookup_spec_handler(lookup, tokens, launch))
}

/// What of guesses is right, by either of its names.
fn verify(
    call: &LayerCall<'_, '_>,
    spec_decode_config: &Py<PyAny>,
    [guesses, targets]: [TensorId; 2],
    launch: LaunchDims,
) -> PyOutcome<PyKernelTensor> {
    lookup(spec_decode_config.bind(call.py))?;
    call.make("verify_out", |b| {
        let requests = b.meta().requests() as u32;
        let id = b.new_tensor(&[requests, 2], KernelDType::Int64, "verify_out")?;
        b.target_verify_greedy_layer(guesses, targets, id, launch)?;
        Ok(id)
    })
}

layer_methods! {
    KernelLayers, |slf| &slf.get().0;

    beside {
        /// Mirage's layer methods that are not here: they raise ``Unsupported`` when they are called, with the reason.
        fn __getattr__(slf: &Bound<'_, Self>, name: &str) -> PyOutcome<MissingLayer> {
            if missing_layer(name).is_some() {
                return Ok(MissingLayer(name.to_owned()));
            }
            let class = slf.get_type().name()?;
            Err(PyFailure::Raised(PyAttributeError::new_err(format!("'{class}' object has no attribute '{name}'"))))
        }
    }

    /// ``output[t] = weight[id]``: ``weight`` is ``[vocabulary, width]``. The ids of a compiled kernel are the tokens of the
    /// step. In test mode they are those of ``input``: an id for each row, the tokens of all requests, of which those of the
    /// pass are taken, or what a layer wrote; one that nobody wrote stands for ``tokens`` of the metadata. ``input_source`` is
    /// 0 or 1, Mirage's ``tokens`` and ``input_tokens``: the same here.
    fn embed_layer(input: TensorHandle, weight: TensorHandle, output: TensorHandle; launch, input_source: u32 = 0);

    /// ``output = input / sqrt(mean(input**2) + rms_norm_eps) * weight``, row by row.
    fn rmsnorm_layer(input: TensorHandle, weight: TensorHandle, output: TensorHandle; launch);

    /// ``rmsnorm_layer`` and then ``linear_layer``.
    fn rmsnorm_linear_layer(
        input: TensorHandle, weight_norm: TensorHandle, weight_linear: TensorHandle, output: TensorHandle; launch
    );

    /// ``output = input @ weight.T``.
    fn linear_layer(input: TensorHandle, weight: TensorHandle, output: TensorHandle; launch);

    /// ``linear_layer``; how the sum is split is the device's decision, and its order that of every other product.
    fn splitk_linear_layer(input: TensorHandle, weight: TensorHandle, output: TensorHandle; launch);

    /// ``output = residual + input @ weight.T``.
    fn linear_with_residual_layer(
        input: TensorHandle, weight: TensorHandle, residual: TensorHandle, output: TensorHandle; launch
    );

    /// ``output = silu(gate) * up`` of ``[rows, 2 * width]`` with gate before up. Where a fused or shuffled weight made the
    /// input, it has that weight's groups; else ``grid_dim[0]`` says in how many groups gate and up alternate.
    fn silu_mul_layer(input: TensorHandle, output: TensorHandle; launch);

    /// ``silu_mul_layer`` and then ``linear_with_residual_layer``. Gate stands whole before up, but where a fused or shuffled
    /// weight made the input.
    fn silu_mul_linear_with_residual_layer(
        input: TensorHandle, weight: TensorHandle, residual: TensorHandle, output: TensorHandle; launch
    );

    /// ``output = input``. ``dependent_tensor`` has to be written before; the order of layers says so already.
    fn identity_layer(input: TensorHandle, output: TensorHandle; launch, dependent_tensor: Option<TensorHandle> = None);

    /// ``output = input_a + input_b``.
    fn elementwise_add_layer(input_a: TensorHandle, input_b: TensorHandle, output: TensorHandle; launch);

    /// The sum of ``input`` over all ranks, added in their order: of one rank ``output = input``. ``buffer`` is
    /// ``[world_size, rows, width]``. ``PersistentKernel.ranks`` joins ranks.
    fn allreduce_layer(input: TensorHandle, buffer: TensorHandle, output: TensorHandle; launch);

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
    fn attention_layer(
        input: TensorHandle, k_cache: TensorHandle, v_cache: TensorHandle, q_norm: Option<TensorHandle>,
        k_norm: Option<TensorHandle>, cos_pos_embed: Option<TensorHandle>, sin_pos_embed: Option<TensorHandle>,
        output: TensorHandle; launch
    ) => |call| {
        let tables = [q_norm, k_norm, cos_pos_embed, sin_pos_embed];
        call.add(|b| b.attention_layer(input, attended([k_cache, v_cache], tables), output, launch))
    };

    /// ``attention_layer`` for several new tokens of one request.
    fn single_batch_extend_attention_layer(
        input: TensorHandle, k_cache: TensorHandle, v_cache: TensorHandle, q_norm: Option<TensorHandle>,
        k_norm: Option<TensorHandle>, cos_pos_embed: Option<TensorHandle>, sin_pos_embed: Option<TensorHandle>,
        output: TensorHandle; launch
    ) => |call| {
        let tables = [q_norm, k_norm, cos_pos_embed, sin_pos_embed];
        call.add(|b| b.single_batch_extend_attention_layer(input, attended([k_cache, v_cache], tables), output, launch))
    };

    /// ``attention_layer`` over a cache of pages.
    fn paged_attention_layer(
        input: TensorHandle, k_cache: TensorHandle, v_cache: TensorHandle, q_norm: Option<TensorHandle>,
        k_norm: Option<TensorHandle>, cos_pos_embed: Option<TensorHandle>, sin_pos_embed: Option<TensorHandle>,
        output: TensorHandle; launch
    ) => |call| {
        let tables = [q_norm, k_norm, cos_pos_embed, sin_pos_embed];
        call.add(|b| b.paged_attention_layer(input, attended([k_cache, v_cache], tables), output, launch))
    };

    /// Softmax over all experts, the best, their weights divided by their sum. ``input`` is ``[rows, experts]``, ``output``
    /// weights and indices, ``[rows, top_k]`` each; a third tensor, Mirage's mask, stays as it is.
    fn moe_topk_softmax_routing_layer(input: TensorHandle, output: RoutingPair; launch);

    /// Sigmoid of each score, the choice by it and ``bias`` (``[experts]`` or ``None``) within the best groups, weights
    /// divided by their sum and scaled.
    fn moe_topk_sigmoid_routing_layer(
        input: TensorHandle, bias: Option<TensorHandle>, output: RoutingPair; launch, num_groups: u32 = 8,
        topk_group: u32 = 4, routed_scaling_factor: f32 = 2.5
    ) => |call| {
        let routing = Routing { num_groups, topk_group, routed_scaling_factor };
        call.add(|b| b.moe_topk_sigmoid_routing_layer(input, bias, output, routing, launch))
    };

    /// Gate and up of the chosen experts: ``weight`` is ``[experts, 2 * inner, width]`` with the rows of gate first,
    /// ``moe_routing_indices`` the routing's, ``output`` ``[rows, top_k, 2 * inner]``. The mask is not read.
    fn moe_w13_linear_layer(
        input: TensorHandle, weight: TensorHandle, moe_routing_indices: TensorHandle, moe_mask: Option<TensorHandle>,
        output: TensorHandle; launch
    ) => |call| call.add(|b| b.moe_w13_linear_layer(input, weight, moe_routing_indices, output, launch));

    /// ``silu(gate) * up`` of each chosen expert: ``[rows, top_k, 2 * inner]`` to ``[rows, top_k, inner]``.
    fn moe_silu_mul_layer(input: TensorHandle, output: TensorHandle; launch);

    /// The way back of the chosen experts: ``input`` is ``[rows, top_k, inner]``, ``weight`` ``[experts, width, inner]``,
    /// ``output`` ``[rows, top_k, width]``. The mask is not read.
    fn moe_w2_linear_layer(
        input: TensorHandle, weight: TensorHandle, moe_routing_indices: TensorHandle, moe_mask: Option<TensorHandle>,
        output: TensorHandle; launch
    ) => |call| call.add(|b| b.moe_w2_linear_layer(input, weight, moe_routing_indices, output, launch));

    /// ``output = residual + sum of weight[r] * input[r]``: ``input`` is ``[rows, top_k, width]``, ``weight`` the routing's.
    fn moe_mul_sum_add_layer(input: TensorHandle, weight: TensorHandle, residual: TensorHandle, output: TensorHandle; launch);

    /// ``output[t]`` is the index of the largest of ``input[t]``, the first of equals: the token that follows.
    fn argmax_layer(input: TensorHandle, output: TensorHandle; launch);

    /// The first half of ``argmax_layer``: ``output`` is largest values and their indices. The two are one thing here,
    /// which only ``argmax_reduce_layer`` reads.
    fn argmax_partial_layer(input: TensorHandle, output: TensorPair; launch);

    /// The second half of ``argmax_layer``.
    fn argmax_reduce_layer(input: TensorPair, output: TensorHandle; launch);

    /// ``output[t]`` is a token that is drawn by the kernel's ``sampling_params`` and this seed. Each request draws numbers
    /// of its own, whatever runs beside it.
    fn sampling_layer(logits: TensorHandle, output: TensorHandle; launch, seed: u64 = 42);

    /// ``sampling_layer`` by the name that Mirage has for one kind of GPU.
    fn sampling_sm100_layer(logits: TensorHandle, output: TensorHandle; launch, seed: u64 = 42) as sampling_layer;

    /// The first half of ``find_ngram_global_layer``.
    fn find_ngram_partial_layer(input: TensorHandle, output: TensorHandle; launch, ngram_size: u32 = 3);

    /// Guesses: ``output`` is int64 ``[requests, spec_length + 1]``, the last token and what followed the first earlier place
    /// of the last ``ngram_size`` tokens of each request, -1 where there is none. ``input`` is what the first half wrote, and
    /// the tokens, which are read in test mode. A compiled kernel then guesses in each step, from those of its metadata.
    fn find_ngram_global_layer(
        input: TensorPair, output: TensorHandle; launch, ngram_size: u32 = 3, spec_length: u32 = 5
    ) => |call| call.add(|b| b.find_ngram_global_layer(input[1], output, ngram_size, spec_length, launch));

    /// Guesses by a ``PromptLookupConfig``: the tensor ``spec_tokens``, int64 ``[requests, spec_length + 1]``.
    fn prompt_lookup_spec_handler(
        spec_decode_config: Py<PyAny>, tokens: TensorHandle; launch
    ) -> PyKernelTensor => |call| guess(call, &spec_decode_config, tokens, launch);

    /// ``prompt_lookup_spec_handler``: prompts are the only place where guesses come from.
    fn draft_forward_layer_dispatcher(
        spec_decode_config: Py<PyAny>, tokens: TensorHandle; launch
    ) as prompt_lookup_spec_handler -> PyKernelTensor => |call| guess(call, &spec_decode_config, tokens, launch);

    /// Takes the longest prefix of the guesses that the target's own tokens confirm, and one token more: what greedy
    /// decoding gives. ``input`` is guesses and targets, ``output`` int64 ``[requests, 2]``: how many guesses were right, and
    /// the token behind them. A compiled kernel verifies in each step.
    fn target_verify_greedy_layer(
        input: TensorPair, output: TensorHandle; launch
    ) => |call| call.add(|b| b.target_verify_greedy_layer(input[0], input[1], output, launch));

    /// ``target_verify_greedy_layer`` into a tensor of its own, ``verify_out``.
    fn prompt_lookup_verify_handler(
        spec_decode_config: Py<PyAny>, spec_tokens: TensorHandle, target_output: TensorHandle; launch
    ) -> PyKernelTensor => |call| verify(call, &spec_decode_config, [spec_tokens, target_output], launch);

    /// ``prompt_lookup_verify_handler``.
    fn verify_layer_dispatcher(
        spec_decode_config: Py<PyAny>, spec_tokens: TensorHandle, target_output: TensorHandle; launch
    ) as prompt_lookup_verify_handler -> PyKernelTensor => |call| {
        verify(call, &spec_decode_config, [spec_tokens, target_output], launch)
    };
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
