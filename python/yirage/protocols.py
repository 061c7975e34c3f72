"""What a backend is, for those who write one and for those who ask one."""

from __future__ import annotations

import abc
import dataclasses
from typing import Any


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


class CommunicationBackend(abc.ABC):
    """Collectives among processes: subclass it. yirage brings none yet."""

    @abc.abstractmethod
    def init_process_group(self, backend: str, world_size: int, rank: int, **kwargs: Any) -> None: ...

    @abc.abstractmethod
    def all_reduce(self, tensor: Any, op: str = "sum") -> Any: ...

    @abc.abstractmethod
    def all_gather(self, tensor: Any, world_size: int) -> Any: ...

    @abc.abstractmethod
    def broadcast(self, tensor: Any, src: int = 0) -> Any: ...

    @abc.abstractmethod
    def send(self, tensor: Any, dst: int) -> None: ...

    @abc.abstractmethod
    def recv(self, shape: Any, dtype: Any, src: int) -> Any: ...
