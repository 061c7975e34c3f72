//! AMD, and Hygon, whose runtime is HIP under another roof.

use crate::companion_library::CompanionLibrary;
use crate::driver::{DriverApi, VersionQuery};
use crate::error::ProbeError;
use crate::family::{Family, LibraryLocation};
use crate::library::DriverLibrary;
use crate::runtime_compiler::RuntimeCompiler;
use crate::search::LibrarySearch;
use crate::visible::VisibilityVariables;
use yirage_plan::KernelCapabilities;

/// AMD.
pub static HIP: Family = Family {
    name: "hip",
    title: "AMD ROCm",
    system: "linux",
    location: LibraryLocation::Files(LibrarySearch {
        libraries: &["libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so"],
        roots: &["ROCM_PATH", "ROCM_HOME", "HIP_PATH"],
        folders: &["/opt/rocm/lib", "/opt/rocm/hip/lib"],
        own_folders_only: false,
        foreign: &["dtk"],
    }),
    visible: LISTS,
    driver_file: None,
    install: "install AMD's ROCm, version 5 or newer, or name its root in ROCM_PATH",
    ask: |backend, library| driver(of_amd).ask(backend, library),
};

/// AMD's compiler of HIP C++.
pub static HIPRTC: RuntimeCompiler = RuntimeCompiler {
    title: "AMD hipRTC",
    search: LibrarySearch {
        libraries: &["libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libhiprtc.so"],
        roots: &["ROCM_PATH", "ROCM_HOME", "HIP_PATH"],
        folders: &["/opt/rocm/lib", "/opt/rocm/hip/lib"],
        own_folders_only: false,
        foreign: &["dtk"],
    },
    in_packages: &[],
    install: "install AMD's ROCm with hipRTC (the package `hip-runtime-amd` has it), or name its root in ROCM_PATH",
};

/// Hygon's.
pub static HYGON_HIPRTC: RuntimeCompiler = RuntimeCompiler {
    title: "Hygon hipRTC",
    search: LibrarySearch {
        libraries: &["libhiprtc.so.5", "libhiprtc.so"],
        roots: &["DTK_ROOT", "DTK_HOME", "DTKROOT"],
        folders: &["/opt/dtk/lib", "/opt/dtk/lib64", "/opt/dtk/hip/lib"],
        own_folders_only: true,
        foreign: &[],
    },
    in_packages: &[],
    install: "install Hygon's DTK below /opt/dtk, or name its root in DTK_ROOT",
};

/// AMD's collectives, which have NCCL's names.
pub static RCCL: CompanionLibrary = CompanionLibrary {
    search: LibrarySearch {
        libraries: &["librccl.so.1", "librccl.so"],
        roots: &["ROCM_PATH", "ROCM_HOME", "HIP_PATH"],
        folders: &["/opt/rocm/lib"],
        own_folders_only: false,
        foreign: &["dtk"],
    },
    in_packages: &[],
    install: "install AMD's RCCL (the package `rccl` of ROCm), or name ROCm's root in ROCM_PATH",
};

/// Hygon's collectives, which have NCCL's names.
pub static HYGON_RCCL: CompanionLibrary = CompanionLibrary {
    search: LibrarySearch {
        libraries: &["librccl.so.1", "librccl.so"],
        roots: &["DTK_ROOT", "DTK_HOME", "DTKROOT"],
        folders: &["/opt/dtk/lib", "/opt/dtk/lib64"],
        own_folders_only: true,
        foreign: &[],
    },
    in_packages: &[],
    install: "install Hygon's DTK with RCCL below /opt/dtk, or name its root in DTK_ROOT",
};

/// Hygon.
pub static HYGON: Family = Family {
    name: "hygon",
    title: "Hygon DCU",
    system: "linux",
    location: LibraryLocation::Files(LibrarySearch {
        libraries: &["libgalaxyhip.so.5", "libgalaxyhip.so", "libamdhip64.so.5", "libamdhip64.so"],
        roots: &["DTK_ROOT", "DTK_HOME", "DTKROOT"],
        folders: &["/opt/dtk/lib", "/opt/dtk/lib64", "/opt/dtk/hip/lib"],
        own_folders_only: true,
        foreign: &[],
    }),
    visible: LISTS,
    driver_file: None,
    install: "install Hygon's DTK below /opt/dtk, or name its root in DTK_ROOT",
    ask: |backend, library| driver(of_hygon).ask(backend, library),
};

/// The layer above the kernel's driver applies its list first, then the runtime its own.
const LISTS: VisibilityVariables = VisibilityVariables {
    by_runtime: &[&["HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"], &["ROCR_VISIBLE_DEVICES"]],
    by_us: None,
    of_containers: &[],
};

const fn driver(capabilities: fn(&str) -> KernelCapabilities) -> DriverApi {
    DriverApi {
        start: "hipInit",
        version: VersionQuery::Number { call: "hipRuntimeGetVersion", written, oldest: Some(50_000_000) },
        count: "hipGetDeviceCount",
        device: "hipDeviceGet",
        name: "hipDeviceGetName",
        memory: "hipDeviceTotalMem",
        cores: Some(("hipDeviceGetAttribute", 63)),
        arch: |library, device, _| arch(library, device),
        capabilities,
    }
}

/// Ten million times the first number and a hundred thousand times the second.
fn written(version: i32) -> String {
    format!("{}.{}", version / 10_000_000, version % 10_000_000 / 100_000)
}

/// The architecture stands in a record and nowhere else. Where in the record is a matter of the function: the one with a
/// revision in its name came with version 6, the older one kept its layout.
const RECORDS: [(&str, usize); 2] = [("hipGetDevicePropertiesR0600", 1160), ("hipGetDeviceProperties", 396)];

fn arch(library: &DriverLibrary, device: i64) -> Result<String, ProbeError> {
    let [(newer, newer_at), (older, older_at)] = RECORDS;
    let (call, found) = match library.text_of_record(newer, newer_at, device) {
        Err(ProbeError::MissingSymbol { .. }) => (older, library.text_of_record(older, older_at, device)?),
        found => (newer, found?),
    };
    // Behind a colon stand features such as `sramecc+`.
    match found.split(':').next().filter(|arch| arch.starts_with("gfx")) {
        Some(arch) => Ok(arch.to_owned()),
        None => Err(ProbeError::Nonsense { path: library.path(), call, answer: format!("the architecture {found:?}") }),
    }
}

/// What all of them have.
const COMMON: KernelCapabilities =
    KernelCapabilities { fp16: true, int8: true, int4: true, nccl: true, ..KernelCapabilities::LEAST };

/// By architecture: matrix instructions for bf16 came with gfx908, 8-bit floats and sparsity with gfx940 and gfx12.
fn of_amd(arch: &str) -> KernelCapabilities {
    let with = |bf16, fp8, flash| KernelCapabilities {
        bf16,
        fp8,
        sparse_2_4: fp8,
        flash_attention: flash,
        paged_attention: true,
        fused_moe: true,
        ..COMMON
    };
    match arch {
        "gfx900" | "gfx906" => with(false, false, false),
        "gfx908" => with(true, false, false),
        "gfx90a" => with(true, false, true),
        "gfx940" | "gfx941" | "gfx942" | "gfx950" => with(true, true, true),
        arch if arch.starts_with("gfx11") => with(true, false, true),
        arch if arch.starts_with("gfx12") => with(true, true, true),
        arch if arch.starts_with("gfx10") => with(false, false, false),
        _ => KernelCapabilities::LEAST,
    }
}

/// By architecture: bf16 came with gfx928.
fn of_hygon(arch: &str) -> KernelCapabilities {
    match arch {
        "gfx906" | "gfx926" => COMMON,
        "gfx928" | "gfx936" => KernelCapabilities { bf16: true, ..COMMON },
        _ => KernelCapabilities::LEAST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_architecture_has_its_row() {
        let flags = |c: KernelCapabilities| [c.fp16, c.bf16, c.fp8, c.sparse_2_4, c.flash_attention, c.nccl];
        for (arch, want) in [
            ("gfx906", [true, false, false, false, false, true]),
            ("gfx1030", [true, false, false, false, false, true]),
            ("gfx908", [true, true, false, false, false, true]),
            ("gfx90a", [true, true, false, false, true, true]),
            ("gfx942", [true, true, true, true, true, true]),
            ("gfx1100", [true, true, false, false, true, true]),
            ("gfx1201", [true, true, true, true, true, true]),
            ("gfx700", [false; 6]),
        ] {
            assert_eq!(flags(of_amd(arch)), want, "{arch}");
        }
        assert!(!of_hygon("gfx906").bf16 && of_hygon("gfx936").bf16 && of_hygon("gfx1") == KernelCapabilities::LEAST);
        assert_eq!([written(50_221_153), written(60_342_133)], ["5.2", "6.3"]);
    }
}
