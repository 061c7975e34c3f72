"""Sub-graphs of named operations, dispatched to kept plans: ``FusionScheduler``, by the names of InfiniCore."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from . import _yirage

# The compiler that fuses is part of every build; whether a device has kernels for it an engine tells.
FUSION_AVAILABLE: bool = True


@dataclasses.dataclass
class FusionConfig:
    """How plans are made and kept.

    Args:
        enable_fusion: whether plans are kept and fused at first.
        enable_cache: whether plans are kept; without it each call makes its own.
        fallback_on_error: whether a fused plan that fails gives way to one without fusion, and in a ``FusionScheduler``
            a plan that cannot be made to registered callables. Otherwise the error is the call's.
        debug_mode: whether what happens beside a result is logged as INFO, and not as DEBUG.
        max_graph_size: graphs of more nodes are not fused; ``None`` is no limit. InfiniLM has 10, of operations such as a
            whole norm; nodes here are general operations, of which a layer of a model has dozens, so that with 10 no
            model would be fused.
        min_tensor_elements: graphs whose largest value has fewer elements are not fused.
        min_nodes_for_fusion: graphs of fewer nodes are not fused.
        cache_bytes: bytes that kept plans take at most, those used longest ago going first; ``None`` is 2**30.
    """

    enable_fusion: bool = True
    enable_cache: bool = True
    fallback_on_error: bool = True
    debug_mode: bool = False
    max_graph_size: int | None = None
    min_tensor_elements: int = 1024
    min_nodes_for_fusion: int = 2
    cache_bytes: int | None = None


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    """Names as a tuple; a text is one name."""
    return (given,) if isinstance(given, str) else tuple(given)


def _hashable(value: object) -> object:
    """A list as a tuple, so that equal nodes have equal hashes."""
    return tuple(cast("list[object]", value)) if isinstance(value, list) else value


@dataclasses.dataclass(frozen=True)
class OpNode:
    """An operation of a ``SubGraph``.

    Args:
        op_type: its name: an operation of ``KNGraph``, or one that was registered.
        inputs: names of the values that it reads, in the order of its operands.
        outputs: names of the values that it makes.
        attrs: its other arguments by name: a ``dict``, or pairs.
    """

    op_type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attrs: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None

    def __post_init__(self) -> None:
        # A dict is made of pairs as well.
        attrs = dict(cast("Mapping[str, Any]", self.attrs or ()))
        kept = tuple((name, _hashable(value)) for name, value in attrs.items())
        object.__setattr__(self, "inputs", _names(self.inputs))
        object.__setattr__(self, "outputs", _names(self.outputs))
        object.__setattr__(self, "attrs", kept or None)


@dataclasses.dataclass(frozen=True)
class SubGraph:
    """Operations over named values, each behind those whose values it reads. Sizes and types are those of a call.

    Args:
        nodes: the operations.
        input_names: names of the values that are given.
        output_names: names of the values that are given back.
    """

    nodes: tuple[OpNode, ...]
    input_names: tuple[str, ...]
    output_names: tuple[str, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "nodes", tuple(self.nodes))
        object.__setattr__(self, "input_names", _names(self.input_names))
        object.__setattr__(self, "output_names", _names(self.output_names))

    def __len__(self) -> int:
        return len(self.nodes)


class FusionScheduler:
    """Runs sub-graphs by plans that are kept, and fused where the configuration says so.

    Operations of ``KNGraph`` that stand together are one plan. An operation that a callable of Python computes stands
    between two plans. A dispatch of known operations, sizes and types replays the plan that was made for the first one.

    Args:
        config: a ``FusionConfig``, read when the scheduler is made. Its counts of nodes are those of ``KNGraph``'s general
            operations, of which a norm has several.
        device: a backend such as ``'cpu'`` or ``'cuda:0'``; the current backend without it.

    Raises:
        BackendUnavailableError, UnknownBackendError
    """

    def __init__(self, config: FusionConfig | None = None, device: Any = None) -> None:
        self.config: FusionConfig = config or FusionConfig()
        self._native = _yirage.FusionScheduler(self.config, device)

    def dispatch(self, graph: SubGraph, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Runs a sub-graph.

        Args:
            graph: operations with their names. ``rms_norm`` and ``layer_norm`` take a weight (and a bias) as further
                operands and have ``eps=1e-5``; other arguments are ``attrs``, by the names that they have in ``KNGraph``.
            inputs: an array for each name of ``graph.input_names``: float32, float16 or bfloat16, of 4 dimensions at most
                where an operation of ``KNGraph`` reads it. Callables get what was given.

        Returns:
            an array for each name of ``graph.output_names``: a tensor of PyTorch or an array of NumPy where the first
            input is one, else a ``Tensor``; of a callable what it returned.

        Raises:
            GraphError: a name that is no operation's, a value that nothing makes, operands that do not fit.
            InputNotFoundError: an input that is missing, or one too many.
            ArrayError: an array that no plan takes, where no callable takes it either.
        """
        return self._native.dispatch(graph, dict(inputs))

    def register_op(self, op_type: str, op: Callable[..., Any] | SubGraph | _yirage.KNGraph) -> None:
        """Gives a name a meaning in sub-graphs; one that was registered before is replaced.

        Args:
            op_type: the name.
            op: a ``SubGraph``, whose operations stand in the place of the name; a ``KNGraph``, which has a plan of its own;
                or a callable, which gets the operands and the ``attrs`` by name and returns an array, or several in
                order. A callable for an operation of ``KNGraph`` runs where no plan can be made, and a line of the log
                says so.

        Raises:
            OptionError: what is none of these, or a graph under the name of an operation of ``KNGraph``.
            GraphError: a ``SubGraph`` that is not sound.
            Unsupported: a ``KNGraph`` with attached arrays.
        """
        self._native.register_op(op_type, op)

    def clear_cache(self) -> None:
        """Drops all plans and gives back what they take. What was counted and registered stays."""
        self._native.clear_cache()

    def get_cache_stats(self) -> dict[str, Any]:
        """What was done so far: the keys of ``FusedInferEngine.get_stats``, counted by plans that were called, and
        ``size`` and ``keys`` of the kept ones. ``python_ops`` counts operations that callables computed, ``op_fallbacks``
        how often they did because no plan could be made.
        """
        return self._native.get_cache_stats()


__all__ = ["FUSION_AVAILABLE", "FusionConfig", "FusionScheduler", "OpNode", "SubGraph"]
