#!/usr/bin/env python3
"""The hardware interface from end to end, as lines for people. Needs no test runner."""

import sys

from sageLLM.backends import BackendRegistry, BackendType, get_backend


def main():
    print("Available backends:", [kind.name for kind in BackendRegistry.list_available()])
    default = BackendRegistry.get_default()
    print("Default backend:", default.backend_type().name)
    info, able = default.get_device_info(), default.get_capabilities()
    print("Device:", info.name)
    print("Compute capability:", info.compute_capability)
    if info.total_memory_gb is not None:
        print(f"Total memory: {info.total_memory_gb:.2f} GB")
    for name in ["fp16", "bf16", "flash_attention"]:
        print(f"{name}: {'yes' if getattr(able, f'supports_{name}') else 'no'}")
    tensor = default.copy_to_host(default.copy_to_device(default.allocate_tensor((4, 4), "float32")))
    if tensor.tolist() != [[0.0] * 4] * 4:
        print("a tensor came back changed")
        return 1
    for kind in [BackendType.ASCEND, BackendType.CAMBRICON, BackendType.HYGON]:
        print(f"{kind.name}: {BackendRegistry.get(kind) is not None}")
    if get_backend(default.value).value != default.value:
        print("a backend is not found by its name")
        return 1
    print("all tests passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
