"""The native module. Shapes are outermost first; errors are classes of ``yirage.exceptions``."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self, TypeAlias, overload

from .backends import BackendType, BenchmarkResults
from .infer import ModelConfig
from .protocols import DeviceInfo, HardwareBackend, KernelCapabilities

__version__: str

_Backend: TypeAlias = str | BackendType | HardwareBackend | NativeBackend
_Path: TypeAlias = str | os.PathLike[str]
_Dim3: TypeAlias = tuple[int, int, int]
_Map: TypeAlias = tuple[int, int, int]

def run_command(arguments: Sequence[str]) -> int: ...

class NativeBackend:
    @property
    def value(self) -> str: ...
    @property
    def name(self) -> str: ...
    def backend_type(self) -> BackendType: ...
    def is_available(self) -> bool: ...
    def get_device_count(self) -> int: ...
    def get_device_info(self, device_id: int = 0) -> DeviceInfo: ...
    def get_capabilities(self, device_id: int = 0) -> KernelCapabilities: ...
    def get_device(self, device_id: int = 0) -> str: ...
    def synchronize(self, device_id: int | None = None) -> None: ...
    def memory_stats(self, device_id: int = 0) -> dict[str, float]: ...
    def empty_cache(self, device_id: int | None = None) -> None: ...
    def set_device(self, device_id: int) -> None: ...
    def current_device(self) -> int: ...
    def allocate_tensor(self, shape: Sequence[int], dtype: Any = None, device_id: int = 0) -> Tensor: ...
    def copy_to_device(self, tensor: Any, device_id: int = 0, non_blocking: bool = True) -> Tensor: ...
    def copy_to_host(self, tensor: Any, non_blocking: bool = True) -> Tensor: ...

def backend_names() -> list[str]: ...
def canonical_backend(name: str) -> str | None: ...
def set_backend(backend: _Backend, *, threads: int | None = None) -> None: ...
def get_backend(backend: _Backend | None = None) -> NativeBackend | HardwareBackend: ...
def find_backend(backend: object) -> NativeBackend | HardwareBackend | None: ...
def get_default_backend() -> BackendType: ...
def reset_backend() -> None: ...
def register_backend(backend: _Backend, class_: type) -> None: ...
def forget_backends() -> None: ...
def put_faults(
    *,
    alloc: int | None = None,
    submit: int | None = None,
    kernel: int | None = None,
    lost: int | None = None,
    memory: int | None = None,
) -> None: ...
def take_faults() -> None: ...
def get_available_backends() -> list[BackendType]: ...
def list_available_backends() -> list[str]: ...
def discover_devices() -> list[DeviceInfo]: ...
def is_backend_available(backend: object) -> bool: ...
def get_backend_info(backend: _Backend | None = None) -> dict[str, Any]: ...
def get_memory_info(backend: _Backend | None = None) -> dict[str, dict[str, float]]: ...
def auto_configure_backend(backend: _Backend | None = None) -> dict[str, Any]: ...
def get_configurations_from_gpu(rank: int = 0, *, backend: _Backend | None = None) -> tuple[int, int]: ...
def get_configurations_from_cpu() -> tuple[int, int]: ...
def benchmark_backends(
    duration_seconds: float = 10.0, backends: Sequence[_Backend] | None = None
) -> BenchmarkResults: ...
def list_templates() -> dict[str, str]: ...
def get_template(name: str, *, backend: _Backend | None = None, **changes: int) -> dict[str, Any]: ...
def recommended_template(work: str | None = None, *, backend: _Backend | None = None) -> str: ...
def save_config(filename: _Path, config: dict[str, Any]) -> None: ...
def load_config(filename: _Path) -> dict[str, Any]: ...

class Tensor:
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def ndim(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    def data_ptr(self) -> int: ...
    def tolist(self) -> Any: ...
    def item(self) -> float | int | bool: ...
    def numpy(self) -> Any: ...
    def torch(self) -> Any: ...
    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[int, int]: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any: ...
    def __buffer__(self, flags: int, /) -> memoryview: ...
    def __len__(self) -> int: ...

class DTensor:
    @property
    def dims(self) -> tuple[int, ...]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def num_dims(self) -> int: ...
    def dim(self, dim: int) -> int: ...

class STensor:
    @property
    def dims(self) -> tuple[int, ...]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def strides(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def num_dims(self) -> int: ...
    def dim(self, dim: int) -> int: ...

class Handle:
    def wait(self) -> None: ...

class Equivalence:
    @property
    def equal(self) -> bool: ...
    @property
    def b_for_a(self) -> bool: ...
    @property
    def a_for_b(self) -> bool: ...
    @property
    def reason(self) -> str: ...
    @property
    def certificate(self) -> str | None: ...
    @property
    def false_accept_log2(self) -> float | None: ...
    def __bool__(self) -> bool: ...

class KNGraph:
    @property
    def backend(self) -> str: ...
    def new_input(self, dims: Sequence[int], strides: Sequence[int] | None = None, dtype: Any = None) -> DTensor: ...
    def mark_output(self, A: DTensor, strides: Sequence[int] | None = None) -> None: ...
    def exp(self, A: DTensor) -> DTensor: ...
    def silu(self, A: DTensor) -> DTensor: ...
    def gelu(self, A: DTensor) -> DTensor: ...
    def relu(self, A: DTensor) -> DTensor: ...
    def sqrt(self, A: DTensor) -> DTensor: ...
    def square(self, A: DTensor) -> DTensor: ...
    def sigmoid(self, A: DTensor) -> DTensor: ...
    def log(self, A: DTensor) -> DTensor: ...
    def matmul(self, A: DTensor, B: DTensor) -> DTensor: ...
    def add(self, A: DTensor, B: DTensor) -> DTensor: ...
    def sub(self, A: DTensor, B: DTensor) -> DTensor: ...
    def mul(self, A: DTensor, B: DTensor) -> DTensor: ...
    def div(self, A: DTensor, B: DTensor) -> DTensor: ...
    def pow(self, A: DTensor, B: DTensor) -> DTensor: ...
    def reduction(self, A: DTensor, dim: int) -> DTensor: ...
    def max(self, A: DTensor, dim: int) -> DTensor: ...
    def clamp(self, A: DTensor, min_val: float, max_val: float) -> DTensor: ...
    def mul_scalar(self, A: DTensor, scalar: float) -> DTensor: ...
    def rms_norm(self, A: DTensor, normalized_shape: Sequence[int]) -> DTensor: ...
    def layer_norm(
        self,
        A: DTensor,
        normalized_shape: Sequence[int],
        weight: DTensor | None = None,
        bias: DTensor | None = None,
        eps: float = 1e-5,
    ) -> DTensor: ...
    def softmax(self, A: DTensor, dim: int) -> DTensor: ...
    def attention(
        self, q: DTensor, k: DTensor, v: DTensor, causal: bool = False, scale: float | None = None
    ) -> DTensor: ...
    def concat(self, tensors: Sequence[DTensor], dim: int) -> DTensor: ...
    def split(self, A: DTensor, sizes: Sequence[int], dim: int) -> list[DTensor]: ...
    def chunk(self, A: DTensor, chunks: int, dim: int) -> list[DTensor]: ...
    def reshape(self, A: DTensor, dims: Sequence[int]) -> DTensor: ...
    def permute(self, A: DTensor, dims: Sequence[int]) -> DTensor: ...
    def customized(self, inputs: Sequence[DTensor], bgraph: TBGraph) -> list[DTensor]: ...
    def attach_torch_tensor(self, t: DTensor, torch_tensor: Any, name: str | None = None) -> None: ...
    def attach_cuda_tensor(self, t: DTensor, name: str | None = None) -> None: ...
    def attach_nvshmem_tensor(self, t: DTensor, name: str | None = None) -> None: ...
    def fuse_tensors(
        self, input: Sequence[DTensor], fuse_dim: int, num_groups: int, name: str | None = None
    ) -> DTensor: ...
    def shuffle_tensors(
        self, input: Sequence[DTensor], shuffled_dim: int, num_groups: int, name: str | None = None
    ) -> DTensor: ...
    def register_task(self, bgraph: TBGraph, task_type: str, params: Sequence[int] | None = None) -> None: ...
    def generate_task_graph(self, num_gpus: int = 1, my_gpu_id: int = 0) -> dict[str, str]: ...
    def compile(
        self, async_: bool = False, *, inputs: Any = None, profiling: bool = False, **options: Any
    ) -> Handle | None: ...
    def __call__(
        self, inputs: Sequence[Any] | None = None, *, stream: Any = None, profiling: bool = False, **options: Any
    ) -> list[Any]: ...
    def superoptimize(
        self,
        imaps: Sequence[_Map] | None = None,
        omaps: Sequence[_Map] | None = None,
        griddims: Sequence[_Dim3] | None = None,
        blockdims: Sequence[_Dim3] | None = None,
        fmaps: Sequence[int] | None = None,
        franges: Sequence[int] | None = None,
        verbose: bool = False,
        config: str | None = None,
        backend: _Backend | None = None,
        warmup_iters: int = 16,
        profile_iters: int = 1000,
        use_graph_dataset: bool = True,
        use_cached_graphs: bool = True,
        save_codes: bool = False,
        is_formal_verified: bool = False,
        *,
        time_limit: float | None = None,
        budget: int | None = None,
    ) -> KNGraph: ...
    def why(self, decisions: bool = False) -> str: ...
    def to_json(self, filename: _Path | None = None) -> str | None: ...
    def from_json(self, filename: _Path) -> None: ...
    def visualize(self, file_name: _Path) -> None: ...
    def get_owner_independent_hash(self) -> int: ...
    def valid_kernels(self) -> bool: ...
    def get_error_message(self) -> str: ...
    def write_trace(self, file_name: _Path) -> None: ...
    def _repr_svg_(self) -> str: ...

class TBGraph:
    @property
    def grid_dim(self) -> _Dim3: ...
    @property
    def block_dim(self) -> _Dim3: ...
    @property
    def forloop_range(self) -> int: ...
    @property
    def reduction_dimx(self) -> int: ...
    @property
    def operators(self) -> list[str]: ...
    def new_input(
        self, dtensor: DTensor, input_map: _Map, forloop_dim: int, store_in_dmem: bool = False
    ) -> STensor: ...
    def new_output(
        self, stensor: STensor, output_map: _Map, forloop_dim: int = -1, epilogue: str | None = None
    ) -> None: ...
    def exp(self, A: STensor) -> STensor: ...
    def silu(self, A: STensor) -> STensor: ...
    def gelu(self, A: STensor) -> STensor: ...
    def relu(self, A: STensor) -> STensor: ...
    def square(self, A: STensor) -> STensor: ...
    def sqrt(self, A: STensor) -> STensor: ...
    def rms_norm(self, A: STensor) -> STensor: ...
    def layer_norm(self, A: STensor, eps: float = 1e-5) -> STensor: ...
    def forloop_accum_max(self, A: STensor) -> STensor: ...
    def matmul(self, A: STensor, B: STensor) -> STensor: ...
    def add(self, A: STensor, B: STensor) -> STensor: ...
    def mul(self, A: STensor, B: STensor) -> STensor: ...
    def div(self, A: STensor, B: STensor) -> STensor: ...
    def sub(self, A: STensor, B: STensor) -> STensor: ...
    def clamp(self, A: STensor, min_val: float, max_val: float) -> STensor: ...
    def mul_scalar(self, A: STensor, scalar: float) -> STensor: ...
    def reduction(self, A: STensor, dim: int) -> STensor: ...
    def reduction_max(self, A: STensor, dim: int) -> tuple[STensor, STensor]: ...
    def concat(self, A: STensor, B: STensor, dim: int) -> STensor: ...
    def forloop_accum(self, A: STensor, acc: str | None = None) -> STensor: ...
    def forloop_accum_rescale(self, A: STensor, B: STensor, acc: str | None = None) -> STensor: ...

def new_kernel_graph(backend: _Backend | None = None) -> KNGraph: ...
def new_threadblock_graph(
    grid_dim: _Dim3, block_dim: _Dim3, forloop_range: int, reduction_dimx: int = 64
) -> TBGraph: ...
def equivalent(a: KNGraph, b: KNGraph) -> Equivalence: ...
def search_counters() -> dict[str, int]: ...

class KernelTensor:
    @property
    def name(self) -> str: ...
    @property
    def dims(self) -> tuple[int, ...]: ...
    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> str: ...
    @property
    def num_dims(self) -> int: ...
    def dim(self, dim: int) -> int: ...

class KernelLayers:
    def embed_layer(
        self,
        input: KernelTensor,
        weight: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        input_source: int = 0,
    ) -> None: ...
    def rmsnorm_layer(
        self,
        input: KernelTensor,
        weight: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def rmsnorm_linear_layer(
        self,
        input: KernelTensor,
        weight_norm: KernelTensor,
        weight_linear: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def linear_layer(
        self,
        input: KernelTensor,
        weight: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def splitk_linear_layer(
        self,
        input: KernelTensor,
        weight: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def linear_with_residual_layer(
        self,
        input: KernelTensor,
        weight: KernelTensor,
        residual: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def silu_mul_layer(
        self, input: KernelTensor, output: KernelTensor, grid_dim: _Dim3 | None = None, block_dim: _Dim3 | None = None
    ) -> None: ...
    def silu_mul_linear_with_residual_layer(
        self,
        input: KernelTensor,
        weight: KernelTensor,
        residual: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def identity_layer(
        self,
        input: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        dependent_tensor: KernelTensor | None = None,
    ) -> None: ...
    def elementwise_add_layer(
        self,
        input_a: KernelTensor,
        input_b: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def allreduce_layer(
        self,
        input: KernelTensor,
        buffer: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def attention_layer(
        self,
        input: KernelTensor,
        k_cache: KernelTensor,
        v_cache: KernelTensor,
        q_norm: KernelTensor | None,
        k_norm: KernelTensor | None,
        cos_pos_embed: KernelTensor | None,
        sin_pos_embed: KernelTensor | None,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def single_batch_extend_attention_layer(
        self,
        input: KernelTensor,
        k_cache: KernelTensor,
        v_cache: KernelTensor,
        q_norm: KernelTensor | None,
        k_norm: KernelTensor | None,
        cos_pos_embed: KernelTensor | None,
        sin_pos_embed: KernelTensor | None,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def paged_attention_layer(
        self,
        input: KernelTensor,
        k_cache: KernelTensor,
        v_cache: KernelTensor,
        q_norm: KernelTensor | None,
        k_norm: KernelTensor | None,
        cos_pos_embed: KernelTensor | None,
        sin_pos_embed: KernelTensor | None,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def moe_topk_softmax_routing_layer(
        self,
        input: KernelTensor,
        output: Sequence[KernelTensor],
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def moe_topk_sigmoid_routing_layer(
        self,
        input: KernelTensor,
        bias: KernelTensor | None,
        output: Sequence[KernelTensor],
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        num_groups: int = 8,
        topk_group: int = 4,
        routed_scaling_factor: float = 2.5,
    ) -> None: ...
    def moe_w13_linear_layer(
        self,
        input: KernelTensor,
        weight: KernelTensor,
        moe_routing_indices: KernelTensor,
        moe_mask: KernelTensor | None,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def moe_silu_mul_layer(
        self, input: KernelTensor, output: KernelTensor, grid_dim: _Dim3 | None = None, block_dim: _Dim3 | None = None
    ) -> None: ...
    def moe_w2_linear_layer(
        self,
        input: KernelTensor,
        weight: KernelTensor,
        moe_routing_indices: KernelTensor,
        moe_mask: KernelTensor | None,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def moe_mul_sum_add_layer(
        self,
        input: KernelTensor,
        weight: KernelTensor,
        residual: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def argmax_layer(
        self, input: KernelTensor, output: KernelTensor, grid_dim: _Dim3 | None = None, block_dim: _Dim3 | None = None
    ) -> None: ...
    def argmax_partial_layer(
        self,
        input: KernelTensor,
        output: Sequence[KernelTensor],
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def argmax_reduce_layer(
        self,
        input: Sequence[KernelTensor],
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def sampling_layer(
        self,
        logits: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        seed: int = 42,
    ) -> None: ...
    def sampling_sm100_layer(
        self,
        logits: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        seed: int = 42,
    ) -> None: ...
    def find_ngram_partial_layer(
        self,
        input: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        ngram_size: int = 3,
    ) -> None: ...
    def find_ngram_global_layer(
        self,
        input: Sequence[KernelTensor],
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        ngram_size: int = 3,
        spec_length: int = 5,
    ) -> None: ...
    def prompt_lookup_spec_handler(
        self,
        spec_decode_config: Any,
        tokens: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> KernelTensor: ...
    def draft_forward_layer_dispatcher(
        self,
        spec_decode_config: Any,
        tokens: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> KernelTensor: ...
    def target_verify_greedy_layer(
        self,
        input: Sequence[KernelTensor],
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def prompt_lookup_verify_handler(
        self,
        spec_decode_config: Any,
        spec_tokens: KernelTensor,
        target_output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> KernelTensor: ...
    def verify_layer_dispatcher(
        self,
        spec_decode_config: Any,
        spec_tokens: KernelTensor,
        target_output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> KernelTensor: ...

class LatentLayers(KernelLayers):
    def linear_bmm_layer(
        self,
        input: KernelTensor,
        weight: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def mla_rope_layer(
        self,
        input: KernelTensor,
        cos_pos_embed: KernelTensor,
        sin_pos_embed: KernelTensor,
        output: KernelTensor,
        width: int,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        *,
        interleaved: bool = True,
    ) -> None: ...
    def assemble_q_decode_layer(
        self,
        q_nope: KernelTensor,
        q_pe: KernelTensor,
        output: KernelTensor,
        num_heads: int,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def mla_kv_gather_layer(
        self,
        c_latent_new: KernelTensor,
        k_pe_new: KernelTensor,
        paged_cache: KernelTensor,
        contiguous_kv: KernelTensor,
        mla_params: Sequence[int],
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def mla_kv_gather_split_layer(
        self,
        c_latent_new: KernelTensor,
        k_pe_new: KernelTensor,
        paged_cache: KernelTensor,
        ckv_sep: KernelTensor,
        kpe_sep: KernelTensor,
        mla_params: Sequence[int],
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def mla_decode_layer(
        self,
        q_input: KernelTensor,
        kv_input: KernelTensor,
        output_partial: KernelTensor,
        output_lse: KernelTensor,
        mla_params: Sequence[int],
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        q_len: int = 1,
        *,
        softmax_scale: float | None = None,
    ) -> None: ...
    def mla_reduce_layer(
        self,
        input_partial: KernelTensor,
        input_lse: KernelTensor,
        output: KernelTensor,
        mla_params: Sequence[int],
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        q_len: int = 1,
    ) -> None: ...
    def mla_mtp_decode_layer(
        self,
        q_input: KernelTensor,
        kv_input: KernelTensor,
        output_partial: KernelTensor,
        output_lse: KernelTensor,
        q_len: int,
        kv_len: int,
        *,
        num_heads: int = 128,
        d_k: int = 576,
        d_v: int = 512,
        softmax_scale: float | None = None,
    ) -> None: ...
    def mla_mtp_reduce_layer(
        self, input_partial: KernelTensor, input_lse: KernelTensor, output: KernelTensor, q_len: int, kv_len: int
    ) -> None: ...
    def mla_mtp_decode_tp2_layer(
        self,
        q_input: KernelTensor,
        kv_input: KernelTensor,
        output_partial: KernelTensor,
        output_lse: KernelTensor,
        q_len: int,
        kv_len: int,
        *,
        num_heads: int = 64,
        d_k: int = 576,
        d_v: int = 512,
        softmax_scale: float | None = None,
    ) -> None: ...
    def mla_mtp_decode_tp2_reduce_layer(
        self, input_partial: KernelTensor, input_lse: KernelTensor, output: KernelTensor, q_len: int, kv_len: int
    ) -> None: ...
    def mla_mtp_decode_tp4_layer(
        self,
        q_input: KernelTensor,
        kv_input: KernelTensor,
        output_partial: KernelTensor,
        output_lse: KernelTensor,
        q_len: int,
        kv_len: int,
        *,
        num_heads: int = 32,
        d_k: int = 576,
        d_v: int = 512,
        softmax_scale: float | None = None,
    ) -> None: ...
    def mla_mtp_decode_tp4_reduce_layer(
        self, input_partial: KernelTensor, input_lse: KernelTensor, output: KernelTensor, q_len: int, kv_len: int
    ) -> None: ...
    def mla_mtp_decode_tp8_layer(
        self,
        q_input: KernelTensor,
        kv_input: KernelTensor,
        output_partial: KernelTensor,
        output_lse: KernelTensor,
        q_len_real: int,
        kv_len: int,
        *,
        num_heads: int = 16,
        d_k: int = 576,
        d_v: int = 512,
        softmax_scale: float | None = None,
    ) -> None: ...
    def mla_mtp_decode_tp8_reduce_layer(
        self, input_partial: KernelTensor, input_lse: KernelTensor, output: KernelTensor, q_len_real: int, kv_len: int
    ) -> None: ...
    def mla_prefill_layer(
        self,
        q_nope: KernelTensor,
        q_pe: KernelTensor,
        ckv: KernelTensor,
        kpe: KernelTensor,
        output: KernelTensor,
        mla_params: Sequence[int],
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        *,
        softmax_scale: float | None = None,
    ) -> None: ...
    def mla_prefill_absorbed_layer(
        self,
        q: KernelTensor,
        kv: KernelTensor,
        output: KernelTensor,
        mla_params: Sequence[int],
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        *,
        softmax_scale: float | None = None,
    ) -> None: ...
    def quantize_fp8_layer(
        self,
        input: KernelTensor,
        output_fp8: KernelTensor,
        output_scale: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
        scale_ue8m0: bool = True,
    ) -> None: ...
    def linear_fp8_layer(
        self,
        input_fp8: KernelTensor,
        input_scale: KernelTensor,
        weight_fp8: KernelTensor,
        weight_scale: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def linear_fp8_with_residual_layer(
        self,
        input_fp8: KernelTensor,
        input_scale: KernelTensor,
        weight_fp8: KernelTensor,
        weight_scale: KernelTensor,
        residual: KernelTensor,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def moe_w13_fp8_layer(
        self,
        input_fp8: KernelTensor,
        input_scale: KernelTensor,
        weight_fp8: KernelTensor,
        weight_scale: KernelTensor,
        moe_routing_indices: KernelTensor,
        moe_mask: KernelTensor | None,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...
    def moe_w2_fp8_layer(
        self,
        input_fp8: KernelTensor,
        input_scale: KernelTensor,
        weight_fp8: KernelTensor,
        weight_scale: KernelTensor,
        moe_routing_indices: KernelTensor,
        moe_mask: KernelTensor | None,
        output: KernelTensor,
        grid_dim: _Dim3 | None = None,
        block_dim: _Dim3 | None = None,
    ) -> None: ...

class PersistentKernel(LatentLayers):
    @overload
    def __init__(
        self,
        world_size: int | None = 1,
        mpi_rank: int | None = 0,
        num_workers: int | None = None,
        num_local_schedulers: int | None = 0,
        num_remote_schedulers: int | None = 0,
        max_seq_length: int | None = None,
        eos_token_id: int | None = -1,
        meta_tensors: Sequence[Any] | Mapping[str, Any] | None = None,
        profiler_tensor: Any = None,
        spec_decode_config: Any = None,
        backend: _Backend | None = None,
        test_mode: bool | None = False,
        *,
        mode: str | None = "offline",
        max_num_batched_requests: int | None = None,
        max_num_batched_tokens: int | None = None,
        max_num_pages: int | None = None,
        page_size: int | None = 64,
        trace_name: str | None = None,
        use_cutlass_kernel: bool | None = None,
        device_id: int | None = 0,
        rms_norm_eps: float | None = 1e-6,
        sampling_params: SamplingParams | None = None,
        precision: str | None = "fast",
        executor: str | None = None,
        memory_pool_size_mb: int | None = None,
        use_mixed_precision: bool | None = None,
        optimize_for_inference: bool | None = None,
        use_unified_memory: bool | None = None,
        use_openmp: bool | None = None,
        openmp_threads: int | None = None,
        use_blas: bool | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        mode: str,
        world_size: int | None = 1,
        mpi_rank: int | None = 0,
        num_workers: int | None = None,
        num_local_schedulers: int | None = 0,
        num_remote_schedulers: int | None = 0,
        max_seq_length: int | None = None,
        max_num_batched_requests: int | None = None,
        max_num_batched_tokens: int | None = None,
        max_num_pages: int | None = None,
        page_size: int | None = 64,
        eos_token_id: int | None = -1,
        meta_tensors: Sequence[Any] | Mapping[str, Any] | None = None,
        profiler_tensor: Any = None,
        trace_name: str | None = None,
        spec_decode_config: Any = None,
        use_cutlass_kernel: bool | None = None,
        test_mode: bool | None = False,
        *,
        backend: _Backend | None = None,
        device_id: int | None = 0,
        rms_norm_eps: float | None = 1e-6,
        sampling_params: SamplingParams | None = None,
        precision: str | None = "fast",
        executor: str | None = None,
        memory_pool_size_mb: int | None = None,
        use_mixed_precision: bool | None = None,
        optimize_for_inference: bool | None = None,
        use_unified_memory: bool | None = None,
        use_openmp: bool | None = None,
        openmp_threads: int | None = None,
        use_blas: bool | None = None,
    ) -> None: ...
    @staticmethod
    def ranks(kernels: Sequence[PersistentKernel]) -> PersistentKernel: ...
    def attach_input(self, torch_tensor: Any, name: str | None = None, *, dtype: Any = None) -> KernelTensor: ...
    def new_tensor(
        self,
        dims: Sequence[int],
        strides: Sequence[int] | None = None,
        dtype: Any = None,
        name: str | None = None,
        *,
        io_category: str | None = "cuda_tensor",
    ) -> KernelTensor: ...
    def fuse_tensors(
        self, inputs: Sequence[KernelTensor], fused_dim: int, num_groups: int, name: str | None = None
    ) -> KernelTensor: ...
    def shuffle_tensors(
        self, inputs: Sequence[KernelTensor], shuffled_dim: int, num_groups: int, name: str | None = None
    ) -> KernelTensor: ...
    def build_model(self, model_path: _Path, *, seed: int | None = None) -> None: ...
    def compile(self, output_dir: _Path | None = None, *, eos_token_id: int | None = None) -> None: ...
    def load_mpk_kernel(self, output_dir: _Path, skip_validation: bool = False) -> None: ...
    def save(self, output_dir: _Path) -> None: ...
    def __call__(self, max_steps: int | None = None, *, stream: Any = None, default_stream: Any = None) -> CallReport: ...
    def cancel(self) -> None: ...
    def load_new_request(self, request: int, prompt: Any) -> None: ...
    def run_test_mode(self) -> dict[str, Tensor]: ...
    def write_trace(self, file_name: _Path) -> None: ...
    def finalize(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(self, *exception: object) -> None: ...
    @classmethod
    def get_default_init_parameters(cls) -> dict[str, Any]: ...
    @property
    def meta_tensors(self) -> dict[str, Any]: ...
    @property
    def backend(self) -> str: ...
    @property
    def num_workers(self) -> int: ...
    @property
    def is_compiled(self) -> bool: ...
    def cache_stats(self) -> dict[str, int]: ...
    def plan_counts(self) -> dict[str, int]: ...

class EndedRequest:
    @property
    def request(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def new_tokens(self) -> int: ...
    @property
    def drafted(self) -> int: ...
    @property
    def accepted(self) -> int: ...

class CallReport:
    @property
    def finished(self) -> bool: ...
    @property
    def steps(self) -> int: ...
    @property
    def tokens_run(self) -> int: ...
    @property
    def new_tokens(self) -> int: ...
    @property
    def drafted(self) -> int: ...
    @property
    def accepted(self) -> int: ...
    @property
    def ended(self) -> list[EndedRequest]: ...

class SamplingParams:
    n: int
    presence_penalty: float
    frequency_penalty: float
    repetition_penalty: float
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    seed: int | None
    stop: list[str]
    stop_token_ids: list[int]
    ignore_eos: bool
    max_tokens: int | None
    min_tokens: int
    logprobs: int | None
    prompt_logprobs: int | None
    detokenize: bool
    skip_special_tokens: bool
    include_stop_str_in_output: bool
    bad_words: list[str]
    allowed_token_ids: list[int] | None
    logit_bias: dict[int, float] | None
    samplers: list[str] | None
    dry_multiplier: float
    dry_base: float
    dry_allowed_length: int
    dry_penalty_last_n: int
    dry_sequence_breakers: list[str]
    xtc_probability: float
    xtc_threshold: float
    typical_p: float
    top_n_sigma: float
    dynatemp_range: float
    dynatemp_exponent: float
    mirostat: int
    mirostat_tau: float
    mirostat_eta: float
    def __init__(
        self,
        n: int = 1,
        presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0,
        repetition_penalty: float = 1.0,
        temperature: float = 1.0,
        top_p: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        seed: int | None = None,
        stop: str | Sequence[str] | None = None,
        stop_token_ids: Sequence[int] | None = None,
        ignore_eos: bool = False,
        max_tokens: int | None = 16,
        min_tokens: int = 0,
        logprobs: int | None = None,
        prompt_logprobs: int | None = None,
        detokenize: bool = True,
        skip_special_tokens: bool = True,
        include_stop_str_in_output: bool = False,
        bad_words: Sequence[str] | None = None,
        allowed_token_ids: list[int] | None = None,
        logit_bias: dict[int, float] | None = None,
        *,
        samplers: list[str] | None = None,
        dry_multiplier: float = 0.0,
        dry_base: float = 1.75,
        dry_allowed_length: int = 2,
        dry_penalty_last_n: int = 64,
        dry_sequence_breakers: list[str] | None = None,
        xtc_probability: float = 0.0,
        xtc_threshold: float = 0.1,
        typical_p: float = 1.0,
        top_n_sigma: float = 0.0,
        dynatemp_range: float = 0.0,
        dynatemp_exponent: float = 1.0,
        mirostat: int = 0,
        mirostat_tau: float = 5.0,
        mirostat_eta: float = 0.1,
    ) -> None: ...

class Stream:
    def next(self) -> Any: ...
    def poll(self, wake: Callable[[], object]) -> tuple[bool, Any]: ...
    def cancel(self) -> None: ...

class Tokenizer:
    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]: ...
    def decode(self, token_ids: Sequence[int], skip_special_tokens: bool = False) -> str: ...
    def apply_chat_template(self, messages: Any, *, tokenize: bool = True) -> Any: ...
    @property
    def vocab_size(self) -> int: ...
    @property
    def bos_token_id(self) -> int | None: ...
    @property
    def eos_token_id(self) -> int | None: ...
    def __len__(self) -> int: ...

def load_tokenizer(model_path: _Path) -> Tokenizer: ...

class LLM:
    def __init__(
        self,
        model: _Path,
        *,
        task: str = "auto",
        backend: _Backend | None = None,
        threads: int | None = None,
        precision: str = "fast",
        max_model_len: int | None = None,
        max_num_seqs: int = 16,
        max_num_batched_tokens: int | None = None,
        kv_cache_dtype: str = "auto",
        kv_cache_memory_bytes: int | None = None,
        enable_prefix_caching: bool = True,
        speculative_config: dict[str, Any] | str | None = "auto",
        variant: str | None = None,
        seed: int = 0,
        tp: int | None = None,
        tensor_parallel_size: int | None = None,
        enable_expert_parallel: bool = False,
        pp: int | None = None,
        pipeline_parallel_size: int | None = None,
        lora: _Path | tuple[_Path, float] | list[_Path | tuple[_Path, float]] | None = None,
        **others: Any,
    ) -> None: ...
    def _generate(self, prompts: Any, sampling_params: Any = None, on_finished: Any = None) -> list[Any]: ...
    def _chat(self, messages: Any, sampling_params: Any = None, on_finished: Any = None) -> list[Any]: ...
    def _stream(self, prompt: Any, sampling_params: Any = None, chat: bool = False) -> Stream: ...
    def _embed(
        self, prompts: Any, pooling: str | None = None, normalize: bool | None = None
    ) -> list[tuple[list[int], list[float]]]: ...
    def _score(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[list[int], list[float]]]: ...
    def get_tokenizer(self) -> Tokenizer: ...
    def get_default_sampling_params(self) -> SamplingParams: ...
    @property
    def model_info(self) -> dict[str, Any]: ...
    def get_stats(self) -> dict[str, int]: ...
    def reset_prefix_cache(self) -> None: ...
    def close(self) -> None: ...

class InferEngine:
    def __init__(
        self,
        model_path: str,
        device: Any = None,
        *,
        fusion_config: Any = None,
        warmup_iterations: int = 0,
        precision: str = "exact",
        kv_cache_dtype: str | None = None,
        max_cache_len: int | None = None,
        max_batch_size: int | None = None,
        tp_size: int = 1,
        moe_ep_size: int | None = None,
        **others: Any,
    ) -> None: ...
    @property
    def config(self) -> ModelConfig: ...
    def forward(
        self,
        input_ids: Any,
        pos: Any = None,
        past_kv_lengths: Any = None,
        total_kv_lengths: Any = None,
        choice: Any = None,
        **others: Any,
    ) -> Any: ...
    def generate(
        self,
        input_ids: Any,
        max_new_tokens: int,
        choice: Any,
        eos_token_id: Sequence[int] | None = None,
        stop_on_eos: bool = True,
    ) -> list[list[int]]: ...
    def reset_cache(self, max_batch_size: int | None = None, max_cache_len: int | None = None) -> None: ...
    def state_dict_keyname(self) -> list[str]: ...
    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> tuple[list[str], list[str]]: ...
    def load_file(self, model_path: str, dtype: Any = None) -> None: ...
    def get_stats(self) -> dict[str, Any]: ...
    def set_fusion_enabled(self, enabled: bool) -> None: ...
    @property
    def fusion_enabled(self) -> bool: ...
    @property
    def fusion_scheduler_available(self) -> bool: ...
    def clear_cache(self) -> None: ...
    @property
    def plan_bytes(self) -> int: ...
    @property
    def cached_lengths(self) -> list[int]: ...
    def close(self) -> None: ...

class FusionScheduler:
    def __init__(self, config: Any, device: Any = None) -> None: ...
    def dispatch(self, graph: Any, inputs: dict[str, Any]) -> dict[str, Any]: ...
    def register_op(self, op_type: str, op: Any) -> None: ...
    def clear_cache(self) -> None: ...
    def get_cache_stats(self) -> dict[str, Any]: ...

class ProcessGroup:
    @staticmethod
    def join(
        world_size: int | None = None, rank: int | None = None, deadline: float | None = None
    ) -> ProcessGroup: ...
    @property
    def rank(self) -> int: ...
    @property
    def world_size(self) -> int: ...
    def all_reduce(self, tensor: Any, op: str = "sum") -> Tensor: ...
    def all_gather(self, tensor: Any) -> Tensor: ...
    def reduce_scatter(self, tensor: Any, op: str = "sum") -> Tensor: ...
    def broadcast(self, tensor: Any, src: int = 0) -> Tensor: ...
    def send(self, tensor: Any, dst: int) -> None: ...
    def recv(self, shape: Sequence[int], dtype: str, src: int) -> Tensor: ...
    def barrier(self) -> None: ...

def leave_ranks() -> None: ...
def run_ranks(ranks: int, words: Sequence[str], deadline: float) -> list[int]: ...
