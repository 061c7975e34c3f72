"""Every documented name is there with its documented arguments, by their names.

A line has a name of the package or a class, and behind it methods with their arguments. Documented are those of Mirage,
YiRage, sageLLM and InfiniLM; arguments of theirs that a call takes and reports are tested where the call is.
"""

import importlib
import inspect
import sys

import pytest
from conftest import ROOT

NAMES = """
new_kernel_graph new_threadblock_graph set_gpu_device_id global_config InputNotFoundError equivalent PersistentKernel
int8 int16 int32 int64 uint8 uint16 uint32 uint64 fp8 fp8_e4m3 float16 bfloat16 float32 float64
set_backend get_backend get_available_backends is_backend_available get_backend_info reset_backend get_memory_info
auto_configure_backend benchmark_backends BackendOptimizer BackendType get_configurations_from_gpu
get_configurations_from_cpu list_available_backends get_default_backend SimplePersistentKernel MPK MPKMetadata
PromptLookupConfig LookaheadConfig FUSION_AVAILABLE FusionConfig FusionScheduler OpNode SubGraph FusedInferEngine DistConfig StaticKVCacheConfig PagedKVCacheConfig
load_model_state_dict_by_file LLM LLMEngine AsyncLLMEngine SamplingParams RequestOutput CompletionOutput
"""

ELEMENTWISE = "exp(A) silu(A) gelu(A) relu(A) sqrt(A) square(A) clamp(A,min_val,max_val) add(A,B) mul(A,B) div(A,B)"
ATTENTION = "(input,k_cache,v_cache,q_norm,k_norm,cos_pos_embed,sin_pos_embed,output,grid_dim,block_dim)"
METHODS = {
    "KNGraph": f"""{ELEMENTWISE} pow(A,B) matmul(A,B) reduction(A,dim) rms_norm(A,normalized_shape)
        new_input(dims,strides,dtype) mark_output(A,strides) customized(inputs,bgraph) compile(async_,inputs,profiling)
        superoptimize(imaps,omaps,griddims,blockdims,fmaps,franges,verbose,config,backend,warmup_iters,profile_iters,use_graph_dataset,use_cached_graphs,save_codes,is_formal_verified)
        visualize(file_name) to_json(filename) from_json(filename) get_owner_independent_hash() valid_kernels()
        get_error_message() attach_torch_tensor(t,torch_tensor,name) attach_cuda_tensor(t,name)
        attach_nvshmem_tensor(t,name) fuse_tensors(input,fuse_dim,num_groups,name) why()
        shuffle_tensors(input,shuffled_dim,num_groups,name) register_task(bgraph,task_type,params)
        generate_task_graph(num_gpus,my_gpu_id)""",
    "TBGraph": f"""{ELEMENTWISE} matmul(A,B) sub(A,B) mul_scalar(A,scalar) reduction(A,dim) reduction_max(A,dim)
        rms_norm(A) concat(A,B,dim) forloop_accum(A,acc) forloop_accum_rescale(A,B,acc) forloop_accum_max(A)
        new_input(dtensor,input_map,forloop_dim,store_in_dmem) new_output(stensor,output_map,forloop_dim,epilogue)
        grid_dim forloop_range operators""",
    "PersistentKernel": f"""attach_input(torch_tensor,name) new_tensor(dims,strides,dtype,name)
        fuse_tensors(inputs,fused_dim,num_groups,name) shuffle_tensors(inputs,shuffled_dim,num_groups,name)
        embed_layer(input,weight,output,grid_dim,block_dim,input_source) rmsnorm_layer(input,weight,output)
        rmsnorm_linear_layer(input,weight_norm,weight_linear,output) linear_layer(input,weight,output)
        splitk_linear_layer(input,weight,output) linear_with_residual_layer(input,weight,residual,output)
        silu_mul_layer(input,output) silu_mul_linear_with_residual_layer(input,weight,residual,output)
        identity_layer(input,output,dependent_tensor) elementwise_add_layer(input_a,input_b,output)
        attention_layer{ATTENTION} single_batch_extend_attention_layer{ATTENTION} paged_attention_layer{ATTENTION}
        moe_topk_softmax_routing_layer() moe_topk_sigmoid_routing_layer(num_groups,topk_group,routed_scaling_factor)
        moe_w13_linear_layer() moe_silu_mul_layer() moe_w2_linear_layer() moe_mul_sum_add_layer() moe_w13_fp8_layer()
        moe_w2_fp8_layer() quantize_fp8_layer(scale_ue8m0) linear_fp8_layer() linear_fp8_with_residual_layer()
        mla_kv_gather_layer() mla_kv_gather_split_layer() mla_decode_layer() mla_reduce_layer() mla_prefill_layer()
        mla_mtp_decode_layer() mla_mtp_reduce_layer() draft_forward_layer_dispatcher()
        argmax_layer(input,output) argmax_partial_layer(input,output) argmax_reduce_layer(input,output)
        sampling_sm100_layer(logits,output,seed) allreduce_layer(input,buffer,output)
        find_ngram_partial_layer(ngram_size) find_ngram_global_layer(ngram_size,spec_length)
        prompt_lookup_spec_handler() target_verify_greedy_layer(input,output) prompt_lookup_verify_handler()
        verify_layer_dispatcher() compile(output_dir,eos_token_id) load_mpk_kernel(output_dir,skip_validation)
        run_test_mode() finalize() get_default_init_parameters()""",
    "MPK": "build() compile() load_new_request(prompt,use_template) init_per_request() decode(ids) run(prompt) "
    "clear_buffers() init_mpi()",
    "MPKMetadata": "check_valid() write_to_file()",
    "BackendOptimizer": "print_system_info() save_config(filename,backend) load_config(filename)",
    "BackendRegistry": "register() get() get_default() set_default() list_available() discover() reset()",
    "HardwareBackend": """backend_type() is_available() get_device_count() get_device_info(device_id)
        get_capabilities(device_id) get_device(device_id) synchronize(device_id) memory_stats(device_id)
        empty_cache(device_id) set_device(device_id) current_device() allocate_tensor(shape,dtype,device_id)
        copy_to_device(tensor,device_id,non_blocking) copy_to_host(tensor,non_blocking)""",
    "CommunicationBackend": """init_process_group(backend,world_size,rank) all_reduce(tensor,op)
        all_gather(tensor,world_size) broadcast(tensor,src) send(tensor,dst) recv(shape,dtype,src)""",
    "FusedInferEngine": """forward(input_ids,pos) set_fusion_enabled() clear_cache() get_stats() fusion_enabled
        fusion_scheduler_available""",
    "FusionConfig": """__init__(enable_fusion,enable_cache,fallback_on_error,debug_mode,max_graph_size,min_tensor_elements,min_nodes_for_fusion)""",
    "FusionScheduler": "dispatch(graph,inputs) register_op(op_type,op) clear_cache() get_cache_stats()",
    "InferEngine": """forward(input_ids,position_ids,past_kv_lengths,total_kv_lengths,temperature,top_k,top_p)
        forward_raw(input_ids) generate(input_ids) reset_cache() get_kv_cache() load_state_dict(state_dict,strict)
        state_dict_keyname() process_weights_after_loading()""",
    "LLM": "generate(prompts,sampling_params) chat(messages,sampling_params) embed() score() get_tokenizer()",
}


def test_the_documented_names_are_there(yr):
    assert [name for name in NAMES.split() if not hasattr(yr, name)] == []


@pytest.mark.parametrize("kind", METHODS)
def test_the_documented_methods_take_their_arguments(yr, kind):
    missing = []
    for line in METHODS[kind].split():
        name, _, arguments = line.rstrip(")").partition("(")
        method = getattr(getattr(yr, kind), name, None)
        taken = inspect.signature(method).parameters if arguments else ()
        if method is None or not set(filter(None, arguments.split(","))) <= set(taken):
            missing.append(line)
    assert missing == []


# Modules of the alias packages, and the names that programs import from them.
ALIASES = """
sageLLM.backends: BackendRegistry BackendType CommunicationBackend DeviceInfo HardwareBackend KernelCapabilities get_backend
    list_available_backends
sageLLM.backends.protocols: BackendType CommunicationBackend DeviceInfo HardwareBackend KernelCapabilities
sageLLM.backends.registry: BackendRegistry get_backend list_available_backends
infinilm: LLM AsyncLLMEngine FusedInferEngine InferEngine LLMEngine SamplingParams
infinilm.cache: PagedKVCacheConfig StaticKVCacheConfig
infinilm.distributed: DistConfig
infinilm.fused_infer_engine: FUSION_AVAILABLE FusedInferEngine FusionConfig
infinilm.infer_engine: GenerationConfig InferEngine
infinilm.llm: LLM LLMEngine AsyncLLMEngine SamplingParams RequestOutput CompletionOutput
infinilm.modeling_utils: load_model_state_dict_by_file
infinicore: device float16 bfloat16 float32 int32 int64
infinicore.fusion: FusionConfig FusionScheduler OpNode SubGraph
infinicore.fusion.fusion_config: FusionConfig
infinicore.fusion.fusion_scheduler: FusionScheduler
infinicore.fusion.subgraph: OpNode SubGraph
infinicore.fusion.patterns.llm_patterns: create_swiglu_pattern create_add_rms_norm_pattern
"""


@pytest.mark.parametrize("line", ALIASES.replace("\n    ", " ").split("\n")[1:-1], ids=lambda line: line.split(":")[0])
def test_the_names_of_other_projects_are_in_their_modules(yr, monkeypatch, line):
    monkeypatch.syspath_prepend(str(ROOT / "python/compat"))
    module, names = line.split(": ")
    for known in [name for name in sys.modules if name.split(".")[0] in ("sageLLM", "infinilm", "infinicore")]:
        monkeypatch.delitem(sys.modules, known)
    found = importlib.import_module(module)
    assert [name for name in names.split() if not hasattr(found, name)] == []
    assert set(found.__all__) >= set(names.split())


# Layer methods of Mirage that are not here: each says why when it is asked for.
MISSING = """
tensor_init_layer paged_attention_split_kv_layer paged_attention_split_kv_merge_layer mla_prefill_tp8_layer
mtp_token_scatter_layer mtp_prepare_verify_layer mtp_build_embed_input_layer
mtp_float_scatter_layer softmax_gather_layer prob_scatter_layer prob_extract_layer mtp_verify_strict_layer
mtp_verify_probabilistic_layer mtp_accept_commit_layer attach_nvshmem_tensor
"""


@pytest.mark.parametrize("name", MISSING.split())
def test_a_layer_that_is_missing_says_why(yr, name):
    kernel = yr.PersistentKernel(max_seq_length=8)
    if hasattr(yr.PersistentKernel, name):
        pytest.fail(f"{name} is here: it belongs to METHODS")
    with pytest.raises(yr.Unsupported, match=r"is not supported: \w+"):
        getattr(kernel, name)()
