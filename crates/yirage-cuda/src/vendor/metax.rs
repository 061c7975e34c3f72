//! MetaX: MACA, whose runtime has HIP's functions under names of its own, and its compiler in the same library.
//!
//! Names and types are those of its runtime's programming guide and of public programs for it (MACA 3). The numbers of its devices'
//! attributes are in no public header, so that limits are what documents promise. Its compiler is told no architecture: without a
//! word it makes code for the device at hand.

use super::{PeerName, VendorLimits, VendorRuntime};
use crate::symbols::{CompilerNames, DriverNames, ErrorWords, compiler_names};
use yirage_collectives::CollectiveVendor;
use yirage_kir::render::CDialect;
use yirage_plan::DeviceLimits;
use yirage_probe::families;

pub(super) static MACA: VendorRuntime = VendorRuntime {
    family: &families::MACA,
    driver: NAMES,
    words: ErrorWords::Returned { name: "mcGetErrorName", text: "mcGetErrorString" },
    compiler: &families::MCRTC,
    compile: compiler_names!("mcrtc", "Bitcode"),
    archs: None,
    arch_option: None,
    dialect: |_| CDialect::MACA,
    limits: VendorLimits::Known(LIMITS),
    peers: PeerName::Ordinal,
    extended: None,
    collectives: CollectiveVendor::MetaX,
    products: |_| None,
    attention: |_| None,
};

/// Of every C500: 64 KiB that a group shares, and the 512 threads that a kernel has unless it asks for more. Of a grid nothing is
/// public: HIP's bounds.
const LIMITS: DeviceLimits = DeviceLimits {
    align: crate::limits::ALIGN,
    block_bytes: Some(64 << 10),
    right_side_piece: None,
    threads: Some(512),
    grid: Some([(1 << 22) - 1, 65_535, 65_535]),
    bindings: None,
    binding_bytes: None,
    subgroup_widths: Vec::new(),
    matrix_shapes: Vec::new(),
};

const NAMES: DriverNames = DriverNames {
    start: "mcInit",
    device: "mcDeviceGet",
    attribute: "mcDeviceGetAttribute",
    retain_context: "mcDevicePrimaryCtxRetain",
    release_context: "mcDevicePrimaryCtxRelease",
    current_context: "mcCtxGetCurrent",
    set_context: "mcCtxSetCurrent",
    free_memory: "mcMemGetInfo",
    alloc: "mcMalloc",
    free: "mcFree",
    alloc_host: "mcMallocHost",
    free_host: "mcFreeHost",
    upload: "mcMemcpyHtoDAsync",
    download: "mcMemcpyDtoHAsync",
    copy: "mcMemcpyDtoDAsync",
    copy_peer: "mcMemcpyPeerAsync",
    fill: "mcMemsetAsync",
    new_stream: "mcStreamCreateWithFlags",
    drop_stream: "mcStreamDestroy",
    wait_stream: "mcStreamSynchronize",
    wait_event: "mcStreamWaitEvent",
    new_event: "mcEventCreateWithFlags",
    drop_event: "mcEventDestroy",
    record_event: "mcEventRecord",
    query_event: "mcEventQuery",
    elapsed: "mcEventElapsedTime",
    load_module: "mcModuleLoadData",
    unload_module: "mcModuleUnload",
    function: "mcModuleGetFunction",
    launch: "mcModuleLaunchKernel",
    begin_capture: "mcStreamBeginCapture",
    end_capture: "mcStreamEndCapture",
    instantiate: "mcGraphInstantiateWithFlags",
    drop_graph: "mcGraphDestroy",
    drop_executable: "mcGraphExecDestroy",
    launch_graph: "mcGraphLaunch",
};
