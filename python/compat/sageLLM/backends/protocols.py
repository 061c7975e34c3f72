"""What a backend is."""

from yirage import BackendType, CommunicationBackend, DeviceInfo, HardwareBackend, KernelCapabilities

__all__ = ["BackendType", "CommunicationBackend", "DeviceInfo", "HardwareBackend", "KernelCapabilities"]
