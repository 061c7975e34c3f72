"""Backends: the names, the registry, and settings that follow from a device."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any, Callable, TypeVar

from . import _yirage
from .protocols import CommunicationBackend, DeviceInfo, HardwareBackend, KernelCapabilities

HardwareBackend.register(_yirage.NativeBackend)


def _missing(cls: Any, value: object) -> Any:
    name = _yirage.canonical_backend(value) if isinstance(value, str) else None
    return None if name is None else cls.__members__.get(name.upper())


if TYPE_CHECKING:
    # What the registry names, for those who check types; a test compares both lists.
    class BackendType(str, enum.Enum):
        CUDA = "cuda"
        ASCEND = "ascend"
        CAMBRICON = "cambricon"
        HYGON = "hygon"
        HIP = "hip"
        METAX = "metax"
        MOORE = "moore"
        ILUVATAR = "iluvatar"
        KUNLUN = "kunlun"
        QY = "qy"
        ALI = "ali"
        MPS = "mps"
        VULKAN = "vulkan"
        DX12 = "dx12"
        CPU = "cpu"
        AUTO = "auto"

else:
    # The names are the registry's, so that there is one list of them.
    BackendType = enum.Enum(
        "BackendType",
        {name.upper(): name for name in [*_yirage.backend_names(), "auto"]},
        type=str,
        module=__name__,
    )
    BackendType.__doc__ = "Names of backends. Members are texts; aliases such as ``BackendType('nvidia')`` are taken."
    BackendType._missing_ = classmethod(_missing)
    BackendType.__str__ = lambda self: self.value

set_backend = _yirage.set_backend
set_default_backend = _yirage.set_backend
get_backend = _yirage.get_backend
get_default_backend = _yirage.get_default_backend
reset_backend = _yirage.reset_backend
get_available_backends = _yirage.get_available_backends
list_available_backends = _yirage.list_available_backends
list_backends = _yirage.backend_names
is_backend_available = _yirage.is_backend_available
get_backend_info = _yirage.get_backend_info
get_memory_info = _yirage.get_memory_info
auto_configure_backend = _yirage.auto_configure_backend
benchmark_backends = _yirage.benchmark_backends

_Class = TypeVar("_Class", bound=type)


class BackendRegistry:
    """The list of backends: those that yirage brings, and classes of Python that were registered."""

    @staticmethod
    def register(backend_type: Any) -> Callable[[_Class], _Class]:
        """Registers a ``HardwareBackend`` under a member of ``BackendType`` or a new name, as a decorator."""

        def registered(cls: _Class) -> _Class:
            if not issubclass(cls, HardwareBackend):
                raise TypeError(f"{cls.__name__} is no HardwareBackend: subclass it")
            _yirage.register_backend(backend_type, cls)
            return cls

        return registered

    @staticmethod
    def get(backend_type: Any) -> Any:
        """The backend, or ``None`` where it has no device here."""
        return _yirage.find_backend(backend_type)

    @staticmethod
    def get_default() -> Any:
        """The backend that graphs and models run on where none is named."""
        return _yirage.get_backend()

    @staticmethod
    def set_default(backend_type: Any) -> None:
        """Makes a backend the default."""
        _yirage.set_backend(backend_type)

    @staticmethod
    def list_available() -> list[Any]:
        """The backends that have a device here, the best first."""
        return _yirage.get_available_backends()

    @staticmethod
    def discover() -> list[DeviceInfo]:
        """Every device of every available backend."""
        return _yirage.discover_devices()

    @staticmethod
    def reset() -> None:
        """Forgets the classes that were registered, and what was set."""
        _yirage.forget_backends()


class BenchmarkResults(dict[str, float]):
    """Milliseconds by backend. ``details`` has every op of each, ``errors`` why a backend has none."""

    def __init__(self) -> None:
        super().__init__()
        self.details: dict[str, list[dict[str, Any]]] = {}
        self.errors: dict[str, str] = {}


class BackendOptimizer:
    """Settings that follow from a device, shown, saved and loaded."""

    def print_system_info(self) -> None:
        """Prints every device that is here, and why the other backends have none."""
        for device in _yirage.discover_devices():
            print(f"{device.backend} {device.device_id}: {device.name} ({device.compute_capability})")
            print(f"  memory: {device.free_memory_gb} of {device.total_memory_gb} GB free; cores: {device.num_cores}")
        for name in _yirage.backend_names():
            if not _yirage.is_backend_available(name):
                try:
                    _yirage.get_backend(name)
                except Exception as error:
                    print(f"{name}: {error}")

    def get_optimal_config(self, backend: Any = None) -> dict[str, Any]:
        """What ``auto_configure_backend`` says."""
        return _yirage.auto_configure_backend(backend)

    def save_config(self, filename: Any, backend: Any = None) -> dict[str, Any]:
        """Writes the settings for a backend as JSON, and gives them."""
        config = _yirage.auto_configure_backend(backend)
        _yirage.save_config(filename, config)
        return config

    def load_config(self, filename: Any) -> dict[str, Any]:
        """The settings of a file. Keys that nobody knows stay in it."""
        return _yirage.load_config(filename)


__all__ = [
    "BackendOptimizer",
    "BackendRegistry",
    "BackendType",
    "BenchmarkResults",
    "CommunicationBackend",
    "DeviceInfo",
    "HardwareBackend",
    "KernelCapabilities",
    "auto_configure_backend",
    "benchmark_backends",
    "get_available_backends",
    "get_backend",
    "get_backend_info",
    "get_default_backend",
    "get_memory_info",
    "is_backend_available",
    "list_available_backends",
    "list_backends",
    "reset_backend",
    "set_backend",
    "set_default_backend",
]
