//! NVIDIA: the driver's own interface of CUDA 12.0 or later, and NVRTC.

use super::{PeerName, VendorLimits, VendorRuntime};
use crate::symbols::{ArchNames, CompilerNames, DriverNames, ErrorWords, ExtendedNames, compiler_names, driver_names};
use yirage_collectives::CollectiveVendor;
use yirage_kir::render::CDialect;
use yirage_probe::families;

pub(super) static CUDA: VendorRuntime = VendorRuntime {
    family: &families::CUDA,
    driver: driver_names!("cu", "StreamBeginCapture_v2"),
    words: ErrorWords::Written { name: "cuGetErrorName", text: "cuGetErrorString" },
    compiler: &families::NVRTC,
    compile: compiler_names!("nvrtc", "CUBIN"),
    archs: Some(("sm_", ArchNames { count: "nvrtcGetNumSupportedArchs", all: "nvrtcGetSupportedArchs" })),
    arch_option: Some("--gpu-architecture="),
    dialect: |_| CDialect::CUDA,
    limits: VendorLimits::Asked,
    peers: PeerName::Context,
    extended: Some((
        90,
        ExtendedNames { launch: "cuLaunchKernelEx", resident_blocks: "cuOccupancyMaxActiveBlocksPerMultiprocessor" },
    )),
    collectives: CollectiveVendor::Nvidia,
    products: crate::native::matmul,
    attention: crate::native::attention,
};
