//! MetaX: a runtime with CUDA's functions under names of its own.

use crate::companion_library::CompanionLibrary;
use crate::driver::{DriverApi, VersionQuery};
use crate::family::{Family, LibraryLocation};
use crate::runtime_compiler::RuntimeCompiler;
use crate::search::LibrarySearch;
use crate::visible::VisibilityVariables;
use yirage_plan::KernelCapabilities;

/// MetaX.
pub static MACA: Family = Family {
    name: "metax",
    title: "MetaX MACA",
    system: "linux",
    location: LibraryLocation::Files(RUNTIME),
    visible: VisibilityVariables {
        by_runtime: &[&["MACA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"]],
        by_us: None,
        of_containers: &[],
    },
    driver_file: None,
    install: "install MetaX's MACA below /opt/maca, or name its root in MACA_PATH",
    ask: |backend, library| DRIVER.ask(backend, library),
};

/// MetaX's compiler of MACA C++, which lies in its runtime's library.
pub static MCRTC: RuntimeCompiler = RuntimeCompiler {
    title: "MetaX MCRTC",
    search: RUNTIME,
    in_packages: &[],
    install: "install MetaX's MACA below /opt/maca, or name its root in MACA_PATH",
};

/// MetaX's collectives.
pub static MACA_MCCL: CompanionLibrary = CompanionLibrary {
    search: LibrarySearch {
        libraries: &["libmccl.so"],
        roots: &["MACA_PATH", "MACA_HOME", "MACA_ROOT"],
        folders: &["/opt/maca/lib"],
        own_folders_only: false,
        foreign: &["musa"],
    },
    in_packages: &[],
    install: "install MetaX's MACA below /opt/maca, or name its root in MACA_PATH",
};

const RUNTIME: LibrarySearch = LibrarySearch {
    libraries: &["libmcruntime.so"],
    roots: &["MACA_PATH", "MACA_HOME", "MACA_ROOT"],
    folders: &["/opt/maca/lib"],
    own_folders_only: false,
    foreign: &[],
};

const DRIVER: DriverApi = DriverApi {
    start: "mcInit",
    // The maker documents no form of this number.
    version: VersionQuery::Number { call: "mcRuntimeGetVersion", written: |version| version.to_string(), oldest: None },
    count: "mcGetDeviceCount",
    device: "mcDeviceGet",
    name: "mcDeviceGetName",
    memory: "mcDeviceTotalMem",
    // The numbers of its attributes are in no public header.
    cores: None,
    // Nor is its architecture told by a call: the name says which card it is.
    arch: |_, _, name| Ok(card(name).to_owned()),
    capabilities,
};

/// `C500` of `MetaX C500`, and of `MXC500`, as drivers write it too.
fn card(name: &str) -> &str {
    let words = name.split_whitespace().map(|word| word.strip_prefix("MX").unwrap_or(word));
    words.into_iter().find(|word| is_for_models(word)).unwrap_or("unknown")
}

/// Whether a word names a card for models: the C series, such as C500.
fn is_for_models(word: &str) -> bool {
    word.strip_prefix('C').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// What the cards for models have. Of another series nothing is known.
fn capabilities(card: &str) -> KernelCapabilities {
    match is_for_models(card) {
        true => KernelCapabilities { fp16: true, bf16: true, int8: true, int4: true, ..KernelCapabilities::LEAST },
        false => KernelCapabilities::LEAST,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_for_models_has_its_row() {
        assert!(capabilities("C500").bf16 && !capabilities("C500").fp8);
        assert_eq!([card("MetaX C500 0"), card("MXC500"), card("MXN100")], ["C500", "C500", "unknown"]);
        assert_eq!([capabilities("N100"), capabilities("Card")], [KernelCapabilities::LEAST; 2]);
    }
}
