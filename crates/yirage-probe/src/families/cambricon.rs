//! Cambricon: a driver of CUDA's shape, whose version has three numbers.

use crate::companion_library::CompanionLibrary;
use crate::driver::{DriverApi, VersionQuery};
use crate::family::{Family, LibraryLocation};
use crate::search::LibrarySearch;
use crate::visible::VisibilityVariables;
use yirage_plan::KernelCapabilities;

/// Variables that name the root of Neuware.
const ROOTS: &[&str] = &["NEUWARE_HOME"];
/// Where its packages put libraries.
const FOLDERS: &[&str] = &["/usr/local/neuware/lib64"];

/// Cambricon.
pub static CAMBRICON: Family = Family {
    name: "cambricon",
    title: "Cambricon MLU",
    system: "linux",
    location: LibraryLocation::Files(LibrarySearch {
        libraries: &["libcndrv.so.1", "libcndrv.so"],
        roots: ROOTS,
        folders: FOLDERS,
        own_folders_only: false,
        foreign: &[],
    }),
    visible: VisibilityVariables {
        by_runtime: &[&["MLU_VISIBLE_DEVICES"]],
        by_us: None,
        of_containers: &["CAMBRICON_VISIBLE_DEVICES"],
    },
    driver_file: None,
    install: "install Cambricon's driver and Neuware, or name its root in NEUWARE_HOME",
    ask: |backend, library| DRIVER.ask(backend, library),
};

/// Memory, queues and notifiers.
pub static CNRT: CompanionLibrary = of_neuware(
    &["libcnrt.so"],
    "install Cambricon's runtime (the package cnrt of Neuware), or name Neuware's root in NEUWARE_HOME",
);

/// The operators.
pub static CNNL: CompanionLibrary = of_neuware(
    &["libcnnl.so"],
    "install Cambricon's operators (the package cnnl of Neuware), or name Neuware's root in NEUWARE_HOME",
);

/// Collectives.
pub static CNCL: CompanionLibrary = of_neuware(
    &["libcncl.so.1", "libcncl.so"],
    "install Cambricon's collectives (the package cncl of Neuware), or name Neuware's root in NEUWARE_HOME",
);

const fn of_neuware(libraries: &'static [&'static str], install: &'static str) -> CompanionLibrary {
    let search = LibrarySearch { libraries, roots: ROOTS, folders: FOLDERS, own_folders_only: false, foreign: &[] };
    CompanionLibrary { search, in_packages: &[], install }
}

const DRIVER: DriverApi = DriverApi {
    start: "cnInit",
    version: VersionQuery::Numbers { call: "cnGetDriverVersion", oldest: [4, 20, 0] },
    count: "cnDeviceGetCount",
    device: "cnDeviceGet",
    name: "cnDeviceGetName",
    memory: "cnDeviceTotalMem",
    // The numbers of its attributes are in no public header.
    cores: None,
    arch: |_, _, name| Ok(series(name)),
    capabilities,
};

/// `MLU370` of `MLU370-S4`.
fn series(name: &str) -> String {
    name.split(['-', ' ']).next().unwrap_or(name).to_owned()
}

/// By series: bf16 came with the 300s, 8-bit floats are in none that is known here.
fn capabilities(series: &str) -> KernelCapabilities {
    let Some(number) = series.strip_prefix("MLU").and_then(|digits| digits.parse::<u32>().ok()) else {
        return KernelCapabilities::LEAST;
    };
    KernelCapabilities {
        fp16: true,
        bf16: number >= 300,
        int8: true,
        int4: true,
        flash_attention: number >= 370,
        paged_attention: number >= 370,
        ..KernelCapabilities::LEAST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_series_has_its_row() {
        let flags = |name: &str| (capabilities(&series(name)).fp16, capabilities(&series(name)).bf16);
        assert_eq!(
            [flags("MLU270-X5K"), flags("MLU370-S4"), flags("MLU590")],
            [(true, false), (true, true), (true, true)]
        );
        assert_eq!(capabilities("unknown"), KernelCapabilities::LEAST);
    }
}
