"""What a backend is, for those who write one and for those who ask one."""

from __future__ import annotations

import abc
import atexit
import dataclasses
from typing import Any

from . import _yirage

# Ranks that wait for this one are told that it has ended, and an MPI wants to hear it.
atexit.register(_yirage.leave_ranks)


@dataclasses.dataclass
class DeviceInfo:
    """A device. Memory is in units of 2**30 bytes; what is not known is ``None``."""

    backend: Any
    device_id: int = 0
    name: str = ""
    compute_capability: str | None = None
    total_memory_gb: float | None = None
    free_memory_gb: float | None = None
    num_cores: int | None = None
    driver_version: str | None = None
    sdk_version: str | None = None
    properties: dict[str, Any] = dataclasses.field(default_factory=dict[str, Any])


@dataclasses.dataclass
class KernelCapabilities:
    """What kernels can compute with on a device. What is not known to be there counts as absent."""

    supports_fp32: bool = True
    supports_fp16: bool = False
    supports_bf16: bool = False
    supports_fp8: bool = False
    supports_int8: bool = False
    supports_int4: bool = False
    supports_sparse_2_4: bool = False
    supports_flash_attention: bool = False
    supports_paged_attention: bool = False
    supports_fused_moe: bool = False
    supports_nccl: bool = False
    supports_hccl: bool = False


def _unsupported(backend: Any, what: str) -> Exception:
    from .exceptions import Unsupported

    return Unsupported(f"{what} of {type(backend).__name__} is not supported: its class does not define it")


class HardwareBackend(abc.ABC):
    """A backend: subclass it and register the class with ``BackendRegistry.register``.

    A backend that is written in Python serves discovery and may become the default. Graphs and models do not run on it:
    that raises ``Unsupported``.
    """

    @abc.abstractmethod
    def backend_type(self) -> Any: ...

    @abc.abstractmethod
    def is_available(self) -> bool: ...

    @abc.abstractmethod
    def get_device_count(self) -> int: ...

    @abc.abstractmethod
    def get_device_info(self, device_id: int = 0) -> DeviceInfo: ...

    @abc.abstractmethod
    def get_capabilities(self, device_id: int = 0) -> KernelCapabilities: ...

    @abc.abstractmethod
    def get_device(self, device_id: int = 0) -> Any: ...

    @abc.abstractmethod
    def synchronize(self, device_id: int | None = None) -> None: ...

    @abc.abstractmethod
    def memory_stats(self, device_id: int = 0) -> dict[str, float]: ...

    @abc.abstractmethod
    def empty_cache(self, device_id: int | None = None) -> None: ...

    @property
    def value(self) -> str:
        """Its name, as members of ``BackendType`` have it."""
        kind = self.backend_type()
        return str(getattr(kind, "value", kind))

    def set_device(self, device_id: int) -> None:
        raise _unsupported(self, "set_device")

    def current_device(self) -> int:
        return 0

    def allocate_tensor(self, shape: Any, dtype: Any, device_id: int = 0) -> Any:
        raise _unsupported(self, "allocate_tensor")

    def copy_to_device(self, tensor: Any, device_id: int = 0, non_blocking: bool = True) -> Any:
        raise _unsupported(self, "copy_to_device")

    def copy_to_host(self, tensor: Any, non_blocking: bool = True) -> Any:
        raise _unsupported(self, "copy_to_host")


class CommunicationBackend:
    """Collectives among the processes that were started together, by ``python -m yirage.ranks`` or by ``mpirun``.

    All ranks call the same, with the same shapes. Tensors are float32, float16, bfloat16 or int32 of anybody's; results are new
    ones. A rank that is gone, does something else or does not come within the deadline is a ``RanksError`` on the others. A
    backend of another kind subclasses it.
    """

    _group: _yirage.ProcessGroup | None = None

    def init_process_group(
        self, backend: str = "auto", world_size: int | None = None, rank: int | None = None, **kwargs: Any
    ) -> None:
        """Takes this process's place; ``world_size`` and ``rank`` are compared with those that it was started for.

        Args:
            backend: ``'auto'``, ``'shm'`` or ``'mpi'``: who has started the ranks decides it, and the others are told so. The
                names of libraries for accelerators (``'nccl'``, ``'hccl'``, ``'gloo'``) are taken as ``'auto'``.
            timeout: seconds, or a ``timedelta``, that each wait for another rank lasts at most.

        Raises:
            RanksError: a process that was started for no rank. OptionError: another rank than that.
        """
        known = ["auto", "shm", "mpi", "nccl", "hccl", "cncl", "mccl", "rccl", "gloo"]
        if backend not in known:
            from .exceptions import OptionError

            raise OptionError(f"backend={backend!r}: one of {', '.join(map(repr, known))} is wanted")
        timeout = kwargs.pop("timeout", None)
        if kwargs:
            raise TypeError(f"init_process_group() got an unexpected keyword argument {next(iter(kwargs))!r}")
        seconds = timeout.total_seconds() if hasattr(timeout, "total_seconds") else timeout
        self._group = _yirage.ProcessGroup.join(world_size, rank, seconds)

    @property
    def group(self) -> _yirage.ProcessGroup:
        """This process's place.

        Raises:
            RanksError: before ``init_process_group``.
        """
        if self._group is None:
            from .exceptions import RanksError

            raise RanksError("this backend has no ranks yet: call init_process_group first")
        return self._group

    @property
    def rank(self) -> int:
        """This process's rank, from 0."""
        return self.group.rank

    @property
    def world_size(self) -> int:
        """How many ranks there are."""
        return self.group.world_size

    def all_reduce(self, tensor: Any, op: str = "sum") -> Any:
        """``'sum'``, ``'prod'``, ``'max'``, ``'min'`` or ``'avg'`` over ranks, each element at its place."""
        return self.group.all_reduce(tensor, op)

    def all_gather(self, tensor: Any, world_size: int | None = None) -> Any:
        """The rows of all ranks, rank 0's first."""
        if world_size is not None and world_size != self.world_size:
            from .exceptions import OptionError

            raise OptionError(f"world_size={world_size}: there are {self.world_size} ranks")
        return self.group.all_gather(tensor)

    def reduce_scatter(self, tensor: Any, op: str = "sum") -> Any:
        """This rank's part of the rows of what ``all_reduce`` gives."""
        return self.group.reduce_scatter(tensor, op)

    def broadcast(self, tensor: Any, src: int = 0) -> Any:
        """What rank ``src`` has."""
        return self.group.broadcast(tensor, src)

    def send(self, tensor: Any, dst: int) -> None:
        """Gives elements to a rank that receives them now, which is waited for."""
        self.group.send(tensor, dst)

    def recv(self, shape: Any, dtype: Any, src: int) -> Any:
        """Takes what a rank sends now, which is waited for."""
        name = dtype if isinstance(dtype, str) else getattr(dtype, "name", None) or str(dtype).rsplit(".", 1)[-1]
        return self.group.recv([int(size) for size in shape], name, src)

    def barrier(self) -> None:
        """Waits until all ranks are here."""
        self.group.barrier()
