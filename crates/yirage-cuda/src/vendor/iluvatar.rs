//! Iluvatar: CoreX, whose driver and compiler answer to CUDA's and NVRTC's very names, from a folder of their own.
//!
//! Its compiler gives code by NVRTC's call for assembly text: the one way that is seen in public sources. It is told no architecture:
//! what it calls them is not what the driver tells of a device, and without a word it makes code for the device at hand.

use super::{PeerName, VendorLimits, VendorRuntime};
use crate::symbols::{CompilerNames, DriverNames, ErrorWords, compiler_names, driver_names};
use yirage_collectives::CollectiveVendor;
use yirage_kir::render::CDialect;
use yirage_probe::families;

pub(super) static COREX: VendorRuntime = VendorRuntime {
    family: &families::COREX,
    driver: driver_names!("cu", "StreamBeginCapture_v2"),
    words: ErrorWords::Written { name: "cuGetErrorName", text: "cuGetErrorString" },
    compiler: &families::COREX_NVRTC,
    compile: compiler_names!("nvrtc", "PTX"),
    archs: None,
    arch_option: None,
    dialect: |_| CDialect::COREX,
    limits: VendorLimits::Asked,
    peers: PeerName::Context,
    extended: None,
    collectives: CollectiveVendor::Iluvatar,
    products: |_| None,
    attention: |_| None,
};
