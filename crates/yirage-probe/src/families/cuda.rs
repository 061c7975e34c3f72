//! NVIDIA: the driver's own library, which knows more than the toolkit's and is there without one.

use crate::companion_library::CompanionLibrary;
use crate::driver::{DriverApi, VersionQuery, compute_capability, thousands};
use crate::family::{Family, LibraryLocation};
use crate::library::DriverLibrary;
use crate::runtime_compiler::RuntimeCompiler;
use crate::search::LibrarySearch;
use crate::visible::VisibilityVariables;
use yirage_plan::KernelCapabilities;

/// NVIDIA.
pub static CUDA: Family = Family {
    name: "cuda",
    title: "NVIDIA CUDA",
    system: "linux",
    location: LibraryLocation::Files(LibrarySearch {
        libraries: &["libcuda.so.1", "libcuda.so"],
        roots: &["CUDA_HOME", "CUDA_PATH"],
        folders: &["/usr/local/nvidia/lib64", "/usr/lib/wsl/lib"],
        own_folders_only: false,
        // They have a libcuda.so of their own.
        foreign: &["corex", "dtk"],
    }),
    visible: VisibilityVariables {
        by_runtime: &[&["CUDA_VISIBLE_DEVICES"]],
        by_us: None,
        of_containers: &["NVIDIA_VISIBLE_DEVICES"],
    },
    driver_file: Some("/proc/driver/nvidia/version"),
    install: "install NVIDIA's driver, version 525 or newer, or name the folder of its libcuda.so.1 in LD_LIBRARY_PATH",
    ask: |backend, library| DRIVER.ask(backend, library),
};

/// NVIDIA's compiler of CUDA C++. Of two that are there the newer one is taken, which knows older devices' successors.
pub static NVRTC: RuntimeCompiler = RuntimeCompiler {
    title: "NVIDIA NVRTC",
    search: LibrarySearch {
        libraries: &["libnvrtc.so.13", "libnvrtc.so.12"],
        roots: &["CUDA_HOME", "CUDA_PATH"],
        folders: &["/usr/local/cuda/lib64"],
        own_folders_only: false,
        foreign: &["corex", "dtk"],
    },
    in_packages: &["nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"],
    install: "run `pip install nvidia-cuda-nvrtc` (of CUDA 12: `nvidia-cuda-nvrtc-cu12`), or install the CUDA toolkit",
};

/// NVIDIA's collectives.
pub static NCCL: CompanionLibrary = CompanionLibrary {
    search: LibrarySearch {
        libraries: &["libnccl.so.2", "libnccl.so"],
        roots: &["NCCL_HOME", "CUDA_HOME", "CUDA_PATH"],
        folders: &["/usr/local/nccl/lib", "/usr/local/cuda/lib64"],
        own_folders_only: false,
        foreign: &["corex", "dtk", "rocm"],
    },
    in_packages: &["nvidia/nccl/lib"],
    install: "run `pip install nvidia-nccl-cu13` (of CUDA 12: `nvidia-nccl-cu12`), or install the package libnccl2",
};

const DRIVER: DriverApi = DriverApi {
    start: "cuInit",
    version: VersionQuery::Number { call: "cuDriverGetVersion", written: thousands, oldest: Some(12000) },
    count: "cuDeviceGetCount",
    device: "cuDeviceGet",
    name: "cuDeviceGetName",
    memory: "cuDeviceTotalMem_v2",
    cores: Some((ATTRIBUTE, 16)),
    arch: |library, device, _| arch(library, device),
    capabilities,
};

/// The function that gives attributes.
pub(super) const ATTRIBUTE: &str = "cuDeviceGetAttribute";

fn arch(library: &DriverLibrary, device: i64) -> Result<String, crate::ProbeError> {
    compute_capability(library, ATTRIBUTE, "sm_", [75, 76], device)
}

/// By compute capability: dot products of bytes came with 6.1, bf16, 2:4 sparsity and asynchronous copies with 8.0, 8-bit
/// floats with 8.9.
pub(super) fn capabilities(arch: &str) -> KernelCapabilities {
    let Some(level) = arch.strip_prefix("sm_").and_then(|digits| digits.parse::<u32>().ok()) else {
        return KernelCapabilities::LEAST;
    };
    let bytes = level >= 61;
    KernelCapabilities {
        // 6.1 multiplies f16 at a sixty-fourth of its speed in f32.
        fp16: level >= 53 && level != 61,
        bf16: level >= 80,
        fp8: level >= 89,
        int8: bytes,
        int4: bytes,
        sparse_2_4: level >= 80,
        flash_attention: level >= 80,
        paged_attention: level >= 70,
        fused_moe: level >= 70,
        nccl: true,
        ..KernelCapabilities::LEAST
    }
}

#[cfg(test)]
mod tests {
    use super::capabilities;

    /// fp16, bf16, fp8, int8, sparse_2_4, flash_attention, paged_attention.
    const TABLE: &[(&str, [bool; 7])] = &[
        ("sm_52", [false, false, false, false, false, false, false]),
        ("sm_60", [true, false, false, false, false, false, false]),
        ("sm_61", [false, false, false, true, false, false, false]),
        ("sm_70", [true, false, false, true, false, false, true]),
        ("sm_75", [true, false, false, true, false, false, true]),
        ("sm_80", [true, true, false, true, true, true, true]),
        ("sm_86", [true, true, false, true, true, true, true]),
        ("sm_89", [true, true, true, true, true, true, true]),
        ("sm_90", [true, true, true, true, true, true, true]),
        ("sm_100", [true, true, true, true, true, true, true]),
        ("sm_120", [true, true, true, true, true, true, true]),
        ("unknown", [false, false, false, false, false, false, false]),
    ];

    #[test]
    fn every_compute_capability_has_its_row() {
        for (arch, want) in TABLE {
            let c = capabilities(arch);
            let got = [c.fp16, c.bf16, c.fp8, c.int8, c.sparse_2_4, c.flash_attention, c.paged_attention];
            assert_eq!(got, *want, "{arch}");
            assert!(c.fp32 && !c.hccl && c.int4 == c.int8, "{arch}");
        }
        assert!(capabilities("sm_89").fp8, "Ada has 8-bit floats");
    }
}
