//! AMD, and Hygon, whose runtime is HIP under another roof: `hip_runtime_api.h` of ROCm 5, and hipRTC.

use super::{PeerName, VendorLimits, VendorRuntime};
use crate::symbols::{CompilerNames, DriverNames, ErrorWords, compiler_names};
use yirage_collectives::CollectiveVendor;
use yirage_kir::render::CDialect;
use yirage_plan::DeviceLimits;
use yirage_probe::{Family, RuntimeCompiler, families};

pub(super) static HIP: VendorRuntime = of(&families::HIP, &families::HIPRTC, CollectiveVendor::Amd);
pub(super) static HYGON: VendorRuntime = of(&families::HYGON, &families::HYGON_HIPRTC, CollectiveVendor::Hygon);

/// What every device of both promises (HIP's programming guide): 64 KiB that a group shares, 1,024 threads of a group, and less
/// than 2^32 threads along an axis of the grid.
const LIMITS: DeviceLimits = DeviceLimits {
    align: crate::limits::ALIGN,
    block_bytes: Some(64 << 10),
    right_side_piece: None,
    threads: Some(1024),
    grid: Some([(1 << 22) - 1, 65_535, 65_535]),
    bindings: None,
    binding_bytes: None,
    subgroup_widths: Vec::new(),
    matrix_shapes: Vec::new(),
};

const fn of(
    family: &'static Family,
    compiler: &'static RuntimeCompiler,
    collectives: CollectiveVendor,
) -> VendorRuntime {
    VendorRuntime {
        family,
        driver: NAMES,
        words: ErrorWords::Written { name: "hipDrvGetErrorName", text: "hipDrvGetErrorString" },
        compiler,
        compile: compiler_names!("hiprtc", "Code"),
        archs: None,
        arch_option: Some("--offload-arch="),
        dialect,
        limits: VendorLimits::Known(LIMITS),
        peers: PeerName::Ordinal,
        extended: None,
        collectives,
        products: |_| None,
        attention: |_| None,
    }
}

/// RDNA runs waves of 32 threads (gfx10 and later), all before it waves of 64.
fn dialect(arch: &str) -> CDialect {
    let is_rdna = ["gfx10", "gfx11", "gfx12"].iter().any(|generation| arch.starts_with(generation) && arch.len() == 7);
    if is_rdna { CDialect::HIP_RDNA } else { CDialect::HIP }
}

const NAMES: DriverNames = DriverNames {
    start: "hipInit",
    device: "hipDeviceGet",
    attribute: "hipDeviceGetAttribute",
    retain_context: "hipDevicePrimaryCtxRetain",
    release_context: "hipDevicePrimaryCtxRelease",
    current_context: "hipCtxGetCurrent",
    set_context: "hipCtxSetCurrent",
    free_memory: "hipMemGetInfo",
    alloc: "hipMalloc",
    free: "hipFree",
    alloc_host: "hipHostMalloc",
    free_host: "hipHostFree",
    upload: "hipMemcpyHtoDAsync",
    download: "hipMemcpyDtoHAsync",
    copy: "hipMemcpyDtoDAsync",
    copy_peer: "hipMemcpyPeerAsync",
    fill: "hipMemsetD8Async",
    new_stream: "hipStreamCreateWithFlags",
    drop_stream: "hipStreamDestroy",
    wait_stream: "hipStreamSynchronize",
    wait_event: "hipStreamWaitEvent",
    new_event: "hipEventCreateWithFlags",
    drop_event: "hipEventDestroy",
    record_event: "hipEventRecord",
    query_event: "hipEventQuery",
    elapsed: "hipEventElapsedTime",
    load_module: "hipModuleLoadData",
    unload_module: "hipModuleUnload",
    function: "hipModuleGetFunction",
    launch: "hipModuleLaunchKernel",
    begin_capture: "hipStreamBeginCapture",
    end_capture: "hipStreamEndCapture",
    instantiate: "hipGraphInstantiateWithFlags",
    drop_graph: "hipGraphDestroy",
    drop_executable: "hipGraphExecDestroy",
    launch_graph: "hipGraphLaunch",
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waves_are_as_wide_as_the_architecture_has_them() {
        for arch in ["gfx906", "gfx90a", "gfx942", "gfx936", "gfx1", "unknown"] {
            assert_eq!(dialect(arch).subgroup, 64, "{arch}");
        }
        for arch in ["gfx1030", "gfx1100", "gfx1201"] {
            assert_eq!(dialect(arch).subgroup, 32, "{arch}");
        }
    }
}
