//! The list itself, most wanted first.

use crate::entry::{Provider, RegistryEntry};
use std::sync::Arc;
use yirage_hal::Backend;
use yirage_hal::reference::Reference;
use yirage_probe::ProbeEnvironment;
use yirage_ranks::RankGroup;
use yirage_sim::{Settings, Sim};

/// Vendors whose drivers have CUDA's shape, where their features are on.
macro_rules! cuda_like {
    ($($name:ident, $feature:literal, $vendor:ident;)*) => {$(
        #[cfg(feature = $feature)]
        fn $name(surroundings: &ProbeEnvironment) -> Provider {
            let vendor = yirage_cuda::CudaVendor::$vendor;
            Provider::ByName(Arc::new(yirage_cuda::CudaBackend::new(vendor, surroundings.clone())))
        }

        #[cfg(not(feature = $feature))]
        fn $name(_: &ProbeEnvironment) -> Provider {
            Provider::LeftOut($feature)
        }
    )*};
}

cuda_like! {
    nvidia, "cuda", Nvidia;
    amd, "hip", Amd;
    hygon, "hip", Hygon;
    moore_threads, "musa", MooreThreads;
    iluvatar, "corex", Iluvatar;
    metax, "maca", MetaX;
}

#[cfg(feature = "ascend")]
fn ascend(surroundings: &ProbeEnvironment) -> Provider {
    npu(yirage_npu::NpuVendor::Ascend, surroundings)
}

#[cfg(not(feature = "ascend"))]
fn ascend(_: &ProbeEnvironment) -> Provider {
    Provider::LeftOut("ascend")
}

#[cfg(feature = "cambricon")]
fn cambricon(surroundings: &ProbeEnvironment) -> Provider {
    npu(yirage_npu::NpuVendor::Cambricon, surroundings)
}

#[cfg(not(feature = "cambricon"))]
fn cambricon(_: &ProbeEnvironment) -> Provider {
    Provider::LeftOut("cambricon")
}

/// A maker whose library of operators computes.
#[cfg(any(feature = "ascend", feature = "cambricon"))]
fn npu(vendor: yirage_npu::NpuVendor, surroundings: &ProbeEnvironment) -> Provider {
    Provider::ByName(Arc::new(yirage_npu::NpuBackend::new(vendor, surroundings.clone())))
}

/// Graphics interfaces, where their features are on.
macro_rules! graphics {
    ($($name:ident, $feature:literal, $api:ident;)*) => {$(
        #[cfg(feature = $feature)]
        fn $name(surroundings: &ProbeEnvironment) -> Provider {
            let api = yirage_wgpu::GraphicsApi::$api;
            let backend = Arc::new(yirage_wgpu::WgpuBackend::new(api, surroundings.clone()));
            if api.is_of_this_system() { Provider::ByName(backend) } else { Provider::Elsewhere(backend) }
        }

        #[cfg(not(feature = $feature))]
        fn $name(_: &ProbeEnvironment) -> Provider {
            Provider::LeftOut($feature)
        }
    )*};
}

graphics! {
    metal, "mps", Metal;
    vulkan, "vulkan", Vulkan;
    direct3d12, "dx12", Direct3D12;
}

/// Every name, on a machine with these surroundings. The first backend with a device is the default.
pub(crate) fn list(surroundings: &ProbeEnvironment) -> Vec<RegistryEntry> {
    let not_looked_for = |name, aliases| RegistryEntry { name, aliases, provider: Provider::NotLookedFor };
    let of_tests = |name, backend| RegistryEntry { name, aliases: &[], provider: Provider::OfTests(backend) };
    let list = vec![
        RegistryEntry { name: "cuda", aliases: &["nvidia"], provider: nvidia(surroundings) },
        RegistryEntry { name: "ascend", aliases: &["npu", "huawei"], provider: ascend(surroundings) },
        RegistryEntry { name: "cambricon", aliases: &["mlu"], provider: cambricon(surroundings) },
        RegistryEntry { name: "hygon", aliases: &["dcu"], provider: hygon(surroundings) },
        RegistryEntry { name: "hip", aliases: &["amd", "rocm"], provider: amd(surroundings) },
        RegistryEntry { name: "metax", aliases: &["maca"], provider: metax(surroundings) },
        RegistryEntry { name: "moore", aliases: &["musa"], provider: moore_threads(surroundings) },
        RegistryEntry { name: "iluvatar", aliases: &["corex"], provider: iluvatar(surroundings) },
        not_looked_for("kunlun", &["xpu"]),
        not_looked_for("qy", &[]),
        not_looked_for("ali", &["ppu"]),
        RegistryEntry { name: "mps", aliases: &["metal"], provider: metal(surroundings) },
        RegistryEntry { name: "vulkan", aliases: &[], provider: vulkan(surroundings) },
        RegistryEntry { name: "dx12", aliases: &["d3d12"], provider: direct3d12(surroundings) },
        RegistryEntry { name: "cpu", aliases: &[], provider: cpu() },
        of_tests("reference", Arc::new(Reference::new())),
        of_tests("sim", Arc::new(Sim::default())),
    ];
    with_plugins(list, surroundings)
}

#[cfg(feature = "plugins")]
fn with_plugins(mut list: Vec<RegistryEntry>, surroundings: &ProbeEnvironment) -> Vec<RegistryEntry> {
    crate::plugins::add(&mut list, surroundings);
    list
}

#[cfg(not(feature = "plugins"))]
fn with_plugins(list: Vec<RegistryEntry>, _: &ProbeEnvironment) -> Vec<RegistryEntry> {
    list
}

#[cfg(feature = "cpu")]
fn cpu() -> Provider {
    Provider::Backend(Arc::new(yirage_cpu::Cpu))
}

#[cfg(not(feature = "cpu"))]
fn cpu() -> Provider {
    Provider::LeftOut("cpu")
}

/// The backends whose devices can be ranks of a group, most wanted first.
pub(crate) fn backends_of_ranks() -> Vec<&'static str> {
    let mut able = if cfg!(feature = "cpu") { vec!["cpu"] } else { Vec::new() };
    able.extend(cuda_ranks::names());
    able.extend(npu_ranks::names());
    able.push("sim");
    able
}

/// One of them, whose device is a rank of this group.
pub(crate) fn as_rank(name: &str, surroundings: &ProbeEnvironment, group: &Arc<RankGroup>) -> Arc<dyn Backend> {
    match name {
        #[cfg(feature = "cpu")]
        "cpu" => Arc::new(crate::cpu_rank::CpuOfGroup::new(group.clone())),
        name => cuda_ranks::backend(name, surroundings, group)
            .or_else(|| npu_ranks::backend(name, surroundings, group))
            .unwrap_or_else(|| Arc::new(Sim::of_group(Settings::default(), group.clone()))),
    }
}

/// Devices of CUDA's shape as ranks.
#[cfg(any(feature = "cuda", feature = "hip", feature = "musa", feature = "corex", feature = "maca"))]
mod cuda_ranks {
    use super::{Arc, Backend, ProbeEnvironment, RankGroup};
    use yirage_cuda::{CudaBackend, CudaVendor};

    /// Vendors of this build.
    const VENDORS: &[CudaVendor] = &[
        #[cfg(feature = "cuda")]
        CudaVendor::Nvidia,
        #[cfg(feature = "hip")]
        CudaVendor::Amd,
        #[cfg(feature = "hip")]
        CudaVendor::Hygon,
        #[cfg(feature = "musa")]
        CudaVendor::MooreThreads,
        #[cfg(feature = "corex")]
        CudaVendor::Iluvatar,
        #[cfg(feature = "maca")]
        CudaVendor::MetaX,
    ];

    /// Their names.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        VENDORS.iter().map(|vendor| vendor.name())
    }

    /// The backend of this name.
    pub(super) fn backend(
        name: &str,
        surroundings: &ProbeEnvironment,
        group: &Arc<RankGroup>,
    ) -> Option<Arc<dyn Backend>> {
        let vendor = VENDORS.iter().find(|vendor| vendor.name() == name)?;
        Some(Arc::new(CudaBackend::of_group(*vendor, surroundings.clone(), group.clone())))
    }
}

#[cfg(not(any(feature = "cuda", feature = "hip", feature = "musa", feature = "corex", feature = "maca")))]
mod cuda_ranks {
    use super::{Arc, Backend, ProbeEnvironment, RankGroup};

    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        std::iter::empty()
    }

    pub(super) fn backend(_: &str, _: &ProbeEnvironment, _: &Arc<RankGroup>) -> Option<Arc<dyn Backend>> {
        None
    }
}

/// Devices that compute by their makers' operators as ranks.
#[cfg(any(feature = "ascend", feature = "cambricon"))]
mod npu_ranks {
    use super::{Arc, Backend, ProbeEnvironment, RankGroup};
    use yirage_npu::{NpuBackend, NpuVendor};

    /// Vendors of this build.
    const VENDORS: &[NpuVendor] = &[
        #[cfg(feature = "ascend")]
        NpuVendor::Ascend,
        #[cfg(feature = "cambricon")]
        NpuVendor::Cambricon,
    ];

    /// Their names.
    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        VENDORS.iter().map(|vendor| vendor.name())
    }

    /// The backend of this name.
    pub(super) fn backend(
        name: &str,
        surroundings: &ProbeEnvironment,
        group: &Arc<RankGroup>,
    ) -> Option<Arc<dyn Backend>> {
        let vendor = VENDORS.iter().find(|vendor| vendor.name() == name)?;
        Some(Arc::new(NpuBackend::of_group(*vendor, surroundings.clone(), group.clone())))
    }
}

#[cfg(not(any(feature = "ascend", feature = "cambricon")))]
mod npu_ranks {
    use super::{Arc, Backend, ProbeEnvironment, RankGroup};

    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        std::iter::empty()
    }

    pub(super) fn backend(_: &str, _: &ProbeEnvironment, _: &Arc<RankGroup>) -> Option<Arc<dyn Backend>> {
        None
    }
}
