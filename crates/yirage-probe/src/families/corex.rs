//! Iluvatar CoreX: a driver with CUDA's very names, in a folder of its own.

use super::cuda::ATTRIBUTE;
use crate::companion_library::CompanionLibrary;
use crate::driver::{DriverApi, VersionQuery, compute_capability, thousands};
use crate::family::{Family, LibraryLocation};
use crate::runtime_compiler::RuntimeCompiler;
use crate::search::LibrarySearch;
use crate::visible::VisibilityVariables;
use yirage_plan::KernelCapabilities;

/// Iluvatar CoreX.
pub static COREX: Family = Family {
    name: "iluvatar",
    title: "Iluvatar CoreX",
    system: "linux",
    location: LibraryLocation::Files(LibrarySearch {
        libraries: &["libcuda.so.1", "libcuda.so"],
        roots: &["COREX_HOME", "COREX_ROOT"],
        folders: &["/usr/local/corex/lib64", "/usr/local/corex/lib"],
        own_folders_only: true,
        foreign: &[],
    }),
    visible: VisibilityVariables {
        by_runtime: &[&["ILUVATAR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"]],
        by_us: None,
        of_containers: &[],
    },
    driver_file: None,
    install: "install Iluvatar's CoreX below /usr/local/corex, or name its root in COREX_HOME",
    ask: |backend, library| DRIVER.ask(backend, library),
};

/// CoreX's compiler of C++, which has NVRTC's names.
pub static COREX_NVRTC: RuntimeCompiler = RuntimeCompiler {
    title: "Iluvatar CoreX's NVRTC",
    search: LibrarySearch {
        libraries: &["libnvrtc.so"],
        roots: &["COREX_HOME", "COREX_ROOT"],
        folders: &["/usr/local/corex/lib64", "/usr/local/corex/lib"],
        own_folders_only: true,
        foreign: &[],
    },
    in_packages: &[],
    install: "install Iluvatar's CoreX below /usr/local/corex, or name its root in COREX_HOME",
};

/// CoreX's collectives, which have NCCL's names.
pub static COREX_NCCL: CompanionLibrary = CompanionLibrary {
    search: LibrarySearch {
        libraries: &["libnccl.so.2", "libnccl.so"],
        roots: &["COREX_HOME", "COREX_ROOT"],
        folders: &["/usr/local/corex/lib64", "/usr/local/corex/lib"],
        own_folders_only: true,
        foreign: &[],
    },
    in_packages: &[],
    install: "install Iluvatar's CoreX below /usr/local/corex, or name its root in COREX_HOME",
};

const DRIVER: DriverApi = DriverApi {
    start: "cuInit",
    version: VersionQuery::Number { call: "cuDriverGetVersion", written: thousands, oldest: Some(10020) },
    count: "cuDeviceGetCount",
    device: "cuDeviceGet",
    name: "cuDeviceGetName",
    memory: "cuDeviceTotalMem_v2",
    cores: Some((ATTRIBUTE, 16)),
    arch: |library, device, _| compute_capability(library, ATTRIBUTE, "ivcore", [75, 76], device),
    capabilities,
};

/// The maker's numbers are not NVIDIA's: what all its cards have counts, and nothing that a number would promise.
fn capabilities(_: &str) -> KernelCapabilities {
    KernelCapabilities { fp16: true, int8: true, int4: true, nccl: true, ..KernelCapabilities::LEAST }
}
