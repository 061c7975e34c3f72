//! Moore Threads: a driver with CUDA's functions under names of its own.

use crate::companion_library::CompanionLibrary;
use crate::driver::{DriverApi, VersionQuery, compute_capability};
use crate::family::{Family, LibraryLocation};
use crate::runtime_compiler::RuntimeCompiler;
use crate::search::LibrarySearch;
use crate::visible::VisibilityVariables;
use yirage_plan::KernelCapabilities;

/// Moore Threads.
pub static MUSA: Family = Family {
    name: "moore",
    title: "Moore Threads MUSA",
    system: "linux",
    location: LibraryLocation::Files(LibrarySearch {
        libraries: &["libmusa.so.4", "libmusa.so.1", "libmusa.so"],
        roots: &["MUSA_HOME", "MUSA_ROOT", "MUSA_PATH"],
        folders: &["/usr/local/musa/lib"],
        own_folders_only: false,
        foreign: &[],
    }),
    visible: VisibilityVariables {
        by_runtime: &[&["MUSA_VISIBLE_DEVICES"]],
        by_us: None,
        of_containers: &["MTHREADS_VISIBLE_DEVICES"],
    },
    driver_file: None,
    install: "install Moore Threads' driver and MUSA, or name its root in MUSA_HOME",
    ask: |backend, library| DRIVER.ask(backend, library),
};

/// Moore Threads' compiler of MUSA C++.
pub static MTRTC: RuntimeCompiler = RuntimeCompiler {
    title: "Moore Threads MTRTC",
    search: LibrarySearch {
        libraries: &["libmtrtc.so.1", "libmtrtc.so"],
        roots: &["MUSA_HOME", "MUSA_ROOT", "MUSA_PATH"],
        folders: &["/usr/local/musa/lib"],
        own_folders_only: false,
        foreign: &[],
    },
    in_packages: &[],
    install: "install Moore Threads' MUSA toolkit, or name its root in MUSA_HOME",
};

/// Moore Threads' collectives.
pub static MUSA_MCCL: CompanionLibrary = CompanionLibrary {
    search: LibrarySearch {
        libraries: &["libmccl.so.2", "libmccl.so"],
        roots: &["MUSA_HOME", "MUSA_ROOT", "MUSA_PATH"],
        folders: &["/usr/local/musa/lib"],
        own_folders_only: false,
        foreign: &["maca"],
    },
    in_packages: &[],
    install: "install Moore Threads' MCCL, or name MUSA's root in MUSA_HOME",
};

const DRIVER: DriverApi = DriverApi {
    start: "muInit",
    // The maker documents no form of this number.
    version: VersionQuery::Number { call: "muDriverGetVersion", written: |version| version.to_string(), oldest: None },
    count: "muDeviceGetCount",
    device: "muDeviceGet",
    name: "muDeviceGetName",
    memory: "muDeviceTotalMem_v2",
    cores: Some(("muDeviceGetAttribute", 16)),
    arch: |library, device, _| compute_capability(library, "muDeviceGetAttribute", "mp_", [75, 76], device),
    capabilities,
};

/// By architecture: mp_22 has bf16, mp_31 8-bit floats.
fn capabilities(arch: &str) -> KernelCapabilities {
    let Some(level) = arch.strip_prefix("mp_").and_then(|digits| digits.parse::<u32>().ok()) else {
        return KernelCapabilities::LEAST;
    };
    KernelCapabilities {
        fp16: true,
        bf16: level >= 22,
        fp8: level >= 31,
        int8: true,
        int4: true,
        flash_attention: level >= 22,
        ..KernelCapabilities::LEAST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_architecture_has_its_row() {
        let flags = |arch| (capabilities(arch).fp16, capabilities(arch).bf16, capabilities(arch).fp8);
        assert_eq!(flags("mp_21"), (true, false, false));
        assert_eq!(flags("mp_22"), (true, true, false));
        assert_eq!(flags("mp_31"), (true, true, true));
        assert_eq!(capabilities("unknown"), KernelCapabilities::LEAST);
    }
}
