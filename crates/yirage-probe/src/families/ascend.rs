//! Huawei Ascend: a runtime with functions of its own.
//!
//! Memory is told only of a device that was made current, which takes time on a busy machine; it is given back at once.

use crate::companion_library::CompanionLibrary;
use crate::error::ProbeError;
use crate::family::{Family, LibraryLocation};
use crate::library::DriverLibrary;
use crate::library_report::{LibraryReport, optional_fact};
use crate::limits::MOST_DEVICES;
use crate::search::LibrarySearch;
use crate::visible::VisibilityVariables;
use std::ffi::c_char;
use yirage_hal::DeviceInfo;
use yirage_plan::KernelCapabilities;

/// Variables that name the root of CANN.
const ROOTS: &[&str] = &["ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH", "ASCEND_HOME"];
/// Where its installers put libraries.
const FOLDERS: &[&str] = &["/usr/local/Ascend/ascend-toolkit/latest/lib64", "/usr/local/Ascend/nnrt/latest/lib64"];

/// Huawei Ascend.
pub static ASCEND: Family = Family {
    name: "ascend",
    title: "Huawei Ascend",
    system: "linux",
    location: LibraryLocation::Files(LibrarySearch {
        libraries: &["libascendcl.so"],
        roots: ROOTS,
        folders: FOLDERS,
        own_folders_only: false,
        foreign: &[],
    }),
    visible: VisibilityVariables {
        by_runtime: &[&["ASCEND_RT_VISIBLE_DEVICES"]],
        by_us: None,
        of_containers: &["ASCEND_VISIBLE_DEVICES", "NPU_VISIBLE_DEVICES"],
    },
    driver_file: None,
    install: "install Huawei's driver and CANN and run its set_env.sh, or name its root in ASCEND_TOOLKIT_HOME",
    ask,
};

/// What operators of aclnn are told of their operands.
pub static NNOPBASE: CompanionLibrary = of_cann(
    &["libnnopbase.so"],
    "install CANN's toolkit (8.0 or newer) and run its set_env.sh, or name its root in ASCEND_TOOLKIT_HOME",
);

/// The operators of aclnn. The kernels of a chip come as a package of their own.
pub static OPAPI: CompanionLibrary = of_cann(
    &["libopapi.so"],
    "install CANN's toolkit and the package of operators for the chip (Ascend-cann-kernels-*, 8.0 or newer), and run set_env.sh",
);

/// Collectives. MetaX has a library of this name and other functions.
pub static HCCL: CompanionLibrary = of_cann(
    &["libhccl.so"],
    "install CANN's toolkit (8.0 or newer) and run its set_env.sh, or name its root in ASCEND_TOOLKIT_HOME",
);

const fn of_cann(libraries: &'static [&'static str], install: &'static str) -> CompanionLibrary {
    let search = LibrarySearch { libraries, roots: ROOTS, folders: FOLDERS, own_folders_only: false, foreign: &[] };
    CompanionLibrary { search, in_packages: &[], install }
}

/// It was started by somebody else in this process.
const STARTED_BEFORE: i32 = 100_002;
/// The oldest version of its interface.
const OLDEST: [i32; 3] = [1, 0, 0];
/// The number of the memory on the package.
const HBM: i32 = 1;

fn ask(backend: &'static str, library: &DriverLibrary) -> Result<LibraryReport, ProbeError> {
    let version = library.three_numbers("aclrtGetVersion")?;
    let written = |[a, b, c]: [i32; 3]| format!("{a}.{b}.{c}");
    if version < OLDEST {
        return Err(ProbeError::TooOld { path: library.path(), found: written(version), needed: written(OLDEST) });
    }
    // SAFETY: the header's type; no file of settings is named.
    let code = unsafe { library.function::<unsafe extern "C" fn(*const c_char) -> i32>("aclInit")?(std::ptr::null()) };
    library.checked("aclInit", if code == STARTED_BEFORE { 0 } else { code })?;
    let call = "aclrtGetDeviceCount";
    let count = match u32::try_from(library.number(call)?) {
        Ok(0) => return Err(ProbeError::NoDevice { path: library.path(), hidden: None }),
        Ok(count) if count <= MOST_DEVICES => count,
        _ => {
            return Err(ProbeError::Nonsense {
                path: library.path(),
                call,
                answer: "a negative or huge number".into(),
            });
        }
    };
    let chip = library.own_text("aclrtGetSocName")?;
    let devices = (0..count).map(|ordinal| describe(backend, library, ordinal, &chip)).collect();
    Ok(LibraryReport { driver_version: None, sdk_version: Some(written(version)), devices })
}

fn describe(backend: &'static str, library: &DriverLibrary, ordinal: u32, chip: &str) -> DeviceInfo {
    let mut info = DeviceInfo::new(backend, ordinal, chip, chip);
    info.capabilities = capabilities(chip);
    if let Some([free, total]) = optional_fact(memory(library, ordinal), "memory", &mut info) {
        (info.memory_bytes, info.total_memory_bytes) = (Some(free), Some(total));
    }
    info
}

/// Free and all bytes.
fn memory(library: &DriverLibrary, ordinal: u32) -> Result<[u64; 2], ProbeError> {
    library.of_number("aclrtSetDevice", ordinal)?;
    let told = library.two_sizes("aclrtGetMemInfo", HBM);
    library.of_number("aclrtResetDevice", ordinal)?;
    told
}

/// By chip: bf16 came with the 910B, 8-bit floats with the 950.
fn capabilities(chip: &str) -> KernelCapabilities {
    let common = KernelCapabilities { fp16: true, int8: true, int4: true, hccl: true, ..KernelCapabilities::LEAST };
    let large =
        KernelCapabilities { bf16: true, flash_attention: true, paged_attention: true, fused_moe: true, ..common };
    match chip.strip_prefix("Ascend").unwrap_or(chip) {
        chip if chip.starts_with("950") => KernelCapabilities { fp8: true, ..large },
        chip if chip.starts_with("910B") || chip.starts_with("910_93") => large,
        chip if chip.starts_with("910") || chip.starts_with("310") => common,
        _ => KernelCapabilities::LEAST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_chip_has_its_row() {
        let flags = |chip| {
            let c = capabilities(chip);
            [c.fp16, c.bf16, c.fp8, c.flash_attention, c.hccl, c.nccl]
        };
        assert_eq!(flags("Ascend310P3"), [true, false, false, false, true, false]);
        assert_eq!(flags("Ascend910A"), [true, false, false, false, true, false]);
        assert_eq!(flags("Ascend910B3"), [true, true, false, true, true, false]);
        assert_eq!(flags("Ascend910_9391"), [true, true, false, true, true, false]);
        assert_eq!(flags("Ascend950"), [true, true, true, true, true, false]);
        assert_eq!(capabilities("else"), KernelCapabilities::LEAST);
    }
}
