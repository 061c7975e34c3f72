"""Forward passes: ``InferEngine`` and ``FusedInferEngine``, by the names of InfiniLM."""

from __future__ import annotations

import dataclasses
import os
import types
from typing import Any, NamedTuple

from . import _yirage
from .fusion import FusionConfig


class ModelConfig(types.SimpleNamespace):
    """A model's configuration: its keys as attributes, ``dtype`` as a member of ``yirage.dtype``."""

    def __init__(self, values: dict[str, Any]) -> None:
        super().__init__(**values)

    def to_dict(self) -> dict[str, Any]:
        """The keys with their values."""
        return dict(vars(self))


@dataclasses.dataclass
class DistConfig:
    """Over how many ranks a model is spread, each a process with its part of it."""

    tp_size: int = 1

    def __post_init__(self) -> None:
        if self.tp_size < 1:
            from .exceptions import OptionError

            raise OptionError(f"DistConfig({self.tp_size}): one rank or more")


@dataclasses.dataclass
class StaticKVCacheConfig:
    """A cache for so many rows of so many positions; ``None`` is as many as are needed, and what the model was made for."""

    max_batch_size: int | None = None
    max_cache_len: int | None = None


@dataclasses.dataclass
class PagedKVCacheConfig:
    """A cache of so many blocks of so many positions, whose rows a caller places. Engines here place them by themselves:
    ``InferEngine`` refuses it."""

    num_blocks: int = 512
    block_size: int = 256


@dataclasses.dataclass
class GenerationConfig:
    """How tokens are generated. ``temperature=0`` takes the likeliest; ``top_k=0`` keeps all."""

    max_new_tokens: int | None = None
    temperature: float = 1.0
    top_k: int = 50
    top_p: float = 1.0
    eos_token_id: int | list[int] | None = None
    stop_on_eos: bool = True
    seed: int = 0


class IncompatibleKeys(NamedTuple):
    """Names that ``load_state_dict(strict=False)`` did not find, or had no use for."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class _Choice(NamedTuple):
    temperature: float | None
    top_k: int | None
    top_p: float | None
    seed: int


def _static(config: StaticKVCacheConfig | PagedKVCacheConfig | None) -> StaticKVCacheConfig:
    if isinstance(config, PagedKVCacheConfig):
        from .exceptions import Unsupported

        why = "row i of a call has the blocks of sequence i; give a StaticKVCacheConfig, or use LLM, which shares its blocks"
        raise Unsupported(f"{config} is not supported: {why}")
    return config or StaticKVCacheConfig()


class InferEngine:
    """A model whose forward pass is called with tokens and positions.

    Keys and values of row i of a call stay in the cache of row i: the next call of that row begins where the last one
    ended, or before. Weights are read from the model's files at the first call, unless they were loaded before.

    Args:
        model_path: a file, a folder, a name of the catalogue or of a repository.
        device: a backend such as ``'cpu'`` or ``'cuda:0'``, or an object with ``type`` and ``index``; the current backend
            without it.
        distributed_config: ``DistConfig(n)`` starts ``n - 1`` processes beside this one, which end with the engine. In a process
            that ``python -m yirage.ranks`` or mpirun has started as one of ``n``, the others are the ranks: each makes the
            engine and calls it the same way, and all get the results.
        cache_config: a ``StaticKVCacheConfig``; a ``PagedKVCacheConfig`` is refused.
        precision: ``'exact'`` or ``'fast'``.
        kv_cache_dtype: ``'auto'``, ``'float32'``, ``'float16'``, ``'bfloat16'`` or ``'int8'``.

    Raises:
        ModelNotFoundError, ModelError, Unsupported, BackendUnavailableError, OptionError, RanksError
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str],
        device: Any = None,
        distributed_config: DistConfig | None = None,
        cache_config: StaticKVCacheConfig | PagedKVCacheConfig | None = None,
        *,
        precision: str = "exact",
        kv_cache_dtype: str | None = None,
        **others: Any,
    ) -> None:
        self._open(model_path, device, distributed_config, cache_config, precision, kv_cache_dtype, None, 0, others)

    def _open(
        self,
        model_path: str | os.PathLike[str],
        device: Any,
        distributed_config: DistConfig | None,
        cache_config: StaticKVCacheConfig | PagedKVCacheConfig | None,
        precision: str,
        kv_cache_dtype: str | None,
        fusion_config: FusionConfig | None,
        warmup_iterations: int,
        others: dict[str, Any],
    ) -> None:
        cache = _static(cache_config)
        self._path: str = os.path.expanduser(str(model_path))
        self._native = _yirage.InferEngine(
            self._path,
            device,
            fusion_config=fusion_config,
            warmup_iterations=warmup_iterations,
            precision=precision,
            kv_cache_dtype=kv_cache_dtype,
            max_cache_len=cache.max_cache_len,
            max_batch_size=cache.max_batch_size,
            tp_size=getattr(distributed_config, "tp_size", 1),
            **others,
        )

    @property
    def config(self) -> ModelConfig:
        """The model's configuration; ``config.dtype`` is the type that its makers computed with."""
        return self._native.config

    def forward(
        self,
        input_ids: Any,
        pos: Any = None,
        *,
        position_ids: Any = None,
        past_kv_lengths: Any = None,
        total_kv_lengths: Any = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        seed: int = 0,
        **others: Any,
    ) -> Any:
        """Computes rows of tokens at their positions.

        Args:
            input_ids: whole numbers of shape ``[rows, tokens]`` or ``[tokens]``: a tensor or nested lists.
            pos, position_ids: positions of the same shape, or of one row for all; each row counts on from its first, which
                is at most what is cached of the row. Without them a row begins at ``past_kv_lengths``, or at 0.
            past_kv_lengths, total_kv_lengths: one number a row; they have to agree with the positions.
            temperature, top_k, top_p, seed: with any of the first three the result is one token a row, chosen from the
                logits of its last position.

        Returns:
            float32 logits of shape ``[rows, tokens, vocabulary]``, as a tensor of PyTorch or an array of NumPy where
            ``input_ids`` is one, else as a ``Tensor``; or a list of tokens.

        Raises:
            RequestError: rows that cannot be computed; nothing is changed by them.
        """
        choice = None
        if temperature is not None or top_k is not None or top_p is not None:
            choice = _Choice(temperature, top_k, top_p, seed)
        positions = pos if pos is not None else position_ids
        return self._native.forward(
            input_ids,
            positions,
            past_kv_lengths=past_kv_lengths,
            total_kv_lengths=total_kv_lengths,
            choice=choice,
            **others,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.forward(*args, **kwargs)

    def forward_raw(self, input_ids: Any, pos: Any = None, **others: Any) -> Any:
        """The logits of ``forward``, for which no token is chosen. ``others`` are its arguments but those of sampling."""
        if chosen := {"temperature", "top_k", "top_p", "seed"} & others.keys():
            raise TypeError(f"forward_raw() chooses no token: {', '.join(sorted(chosen))} are arguments of forward()")
        return self.forward(input_ids, pos, **others)

    def generate(
        self, input_ids: Any, generation_config: GenerationConfig | None = None, **changes: Any
    ) -> list[list[int]]:
        """Continues each row of ``input_ids`` by new tokens, which are returned. What was cached is forgotten.

        ``changes`` are fields of ``GenerationConfig``. Rows do not depend on each other. Ctrl-C ends it.

        Raises:
            RequestError: rows or parameters out of their range, and no ``max_new_tokens``.
        """
        how = dataclasses.replace(generation_config or GenerationConfig(), **changes)
        if how.max_new_tokens is None:
            from .exceptions import RequestError

            raise RequestError("max_new_tokens is not given: say how many tokens are wanted at most")
        ends = [how.eos_token_id] if isinstance(how.eos_token_id, int) else how.eos_token_id
        choice = _Choice(how.temperature, how.top_k, how.top_p, how.seed)
        return self._native.generate(input_ids, how.max_new_tokens, choice, ends, how.stop_on_eos)

    def reset_cache(self, cache_config: StaticKVCacheConfig | PagedKVCacheConfig | None = None) -> None:
        """Forgets what is cached of all rows; with a configuration there is room for that from now on."""
        cache = _static(cache_config)
        self._native.reset_cache(cache.max_batch_size, cache.max_cache_len)

    def get_tokenizer(self) -> _yirage.Tokenizer:
        """The model's tokenizer, read from its files."""
        return _yirage.load_tokenizer(self._path)

    def get_kv_cache(self) -> Any:
        """Raises ``Unsupported``: keys and values lie in the device's own layout; ``cached_lengths`` says of how many positions."""
        from .exceptions import Unsupported

        why = "keys and values lie in the device's own layout and type; cached_lengths says how many positions of each row"
        raise Unsupported(f"get_kv_cache is not supported: {why}")

    def process_weights_after_loading(self) -> None:
        """Changes nothing: weights are repacked for the device's kernels as they are loaded."""

    def state_dict_keyname(self) -> list[str]:
        """Names of the tensors that the model reads."""
        return self._native.state_dict_keyname()

    def load_state_dict(self, state_dict: dict[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Loads weights from arrays of float32, float16 or bfloat16 by their names, and drops what was cached.

        Raises:
            ModelError: with ``strict`` for missing or unexpected names, all of which it lists; for another shape.
            ArrayError: what is no such array.
        """
        return IncompatibleKeys(*self._native.load_state_dict(dict(state_dict), strict))

    @property
    def cached_lengths(self) -> list[int]:
        """Positions of each row that are cached."""
        return self._native.cached_lengths

    def close(self) -> None:
        """Gives weights and caches back."""
        self._native.close()

    def __enter__(self) -> InferEngine:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class FusedInferEngine(InferEngine):
    """An ``InferEngine`` that says which plans it keeps and how they ran.

    A call of a new shape makes a plan (``fusion``), one of a known shape replays it with its own tokens and positions. A
    fused plan that fails gives way to one without fusion (``graph_replay``). While fusion is disabled each call makes an
    unfused plan for itself, and nothing is counted.

    Args:
        enable_fusion: whether plans are kept and fused at first.
        warmup_iterations: runs of a new plan before the one that answers its first call.
        fusion_config: a ``FusionConfig``.
        others: as of ``InferEngine``.
    """

    def __init__(
        self,
        model_path: str | os.PathLike[str],
        enable_fusion: bool = True,
        warmup_iterations: int = 1,
        fusion_config: FusionConfig | None = None,
        device: Any = None,
        distributed_config: DistConfig | None = None,
        cache_config: StaticKVCacheConfig | PagedKVCacheConfig | None = None,
        *,
        precision: str = "exact",
        kv_cache_dtype: str | None = None,
        **others: Any,
    ) -> None:
        config = FusionConfig() if fusion_config is None else fusion_config
        if not isinstance(config, FusionConfig):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"fusion_config is a `{type(config).__name__}`: a FusionConfig is wanted")
        config = dataclasses.replace(config, enable_fusion=config.enable_fusion and enable_fusion)
        self._open(
            model_path,
            device,
            distributed_config,
            cache_config,
            precision,
            kv_cache_dtype,
            config,
            warmup_iterations,
            others,
        )

    @property
    def fusion_enabled(self) -> bool:
        """Whether plans are kept and fused now."""
        return self._native.fusion_enabled

    @property
    def fusion_scheduler_available(self) -> bool:
        """Whether the device has kernels for fused nodes."""
        return self._native.fusion_scheduler_available

    def set_fusion_enabled(self, enabled: bool) -> None:
        """Has plans kept and fused from now on, or not. Plans that are kept stay."""
        self._native.set_fusion_enabled(enabled)

    def clear_cache(self) -> None:
        """Drops all plans and gives back what they take. What was counted stays, and so do cached positions."""
        self._native.clear_cache()

    def get_stats(self) -> dict[str, Any]:
        """What was done so far.

        ``cache_hits + cache_misses`` are the calls while fusion was enabled, ``recordings`` is ``cache_misses``, and
        ``fusion_attempts`` is ``fusion_successes + fusion_fallbacks``. ``cached_shapes`` names the kept plans, and
        ``fusion_modes`` says how each runs: ``'fusion'`` or ``'graph_replay'``.
        """
        return self._native.get_stats()


def load_model_state_dict_by_file(engine: InferEngine, model_path: str | os.PathLike[str], dtype: Any = None) -> None:
    """Loads the weights of a model's files into an engine of that model. They keep the types that the files have: a
    ``dtype`` that is another one is reported.

    Raises:
        ModelError: files of another model.
    """
    engine._native.load_file(os.path.expanduser(os.fspath(model_path)), dtype)


__all__ = [
    "DistConfig",
    "FusedInferEngine",
    "GenerationConfig",
    "IncompatibleKeys",
    "InferEngine",
    "ModelConfig",
    "PagedKVCacheConfig",
    "StaticKVCacheConfig",
    "load_model_state_dict_by_file",
]
