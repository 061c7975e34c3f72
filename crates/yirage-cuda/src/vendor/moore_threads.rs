//! Moore Threads: MUSA's driver, which has CUDA's functions and numbers under its own first letters, and MTRTC.

use super::{PeerName, VendorLimits, VendorRuntime};
use crate::symbols::{CompilerNames, DriverNames, ErrorWords, compiler_names, driver_names};
use yirage_collectives::CollectiveVendor;
use yirage_kir::render::CDialect;
use yirage_probe::families;

pub(super) static MUSA: VendorRuntime = VendorRuntime {
    family: &families::MUSA,
    driver: driver_names!("mu", "StreamBeginCapture"),
    words: ErrorWords::Written { name: "muGetErrorName", text: "muGetErrorString" },
    compiler: &families::MTRTC,
    compile: compiler_names!("mtrtc", "FatBin"),
    archs: None,
    arch_option: Some("--offload-arch="),
    dialect: |_| CDialect::MUSA,
    limits: VendorLimits::Asked,
    peers: PeerName::Context,
    extended: None,
    collectives: CollectiveVendor::MooreThreads,
    products: |_| None,
    attention: |_| None,
};
