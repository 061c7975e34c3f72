"""The hardware interface of sageLLM."""

from yirage import (
    BackendRegistry,
    BackendType,
    CommunicationBackend,
    DeviceInfo,
    HardwareBackend,
    KernelCapabilities,
    get_backend,
    list_available_backends,
)

__all__ = [
    "BackendRegistry",
    "BackendType",
    "CommunicationBackend",
    "DeviceInfo",
    "HardwareBackend",
    "KernelCapabilities",
    "get_backend",
    "list_available_backends",
]
