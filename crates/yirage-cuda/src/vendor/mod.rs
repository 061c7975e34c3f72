//! The vendors whose drivers and compilers have CUDA's shape: what each calls its functions, and what it does in its own way.
//!
//! A vendor is a file here and a line in [`CudaVendor`].

mod amd;
mod iluvatar;
mod metax;
mod moore_threads;
mod nvidia;

use crate::symbols::{ArchNames, CompilerNames, DriverNames, ErrorWords, ExtendedNames};
use std::sync::Arc;
use yirage_collectives::CollectiveVendor;
use yirage_kernels::{NativeAttention, NativeProducts};
use yirage_kir::render::CDialect;
use yirage_plan::DeviceLimits;
use yirage_probe::{Family, RuntimeCompiler};

/// A vendor whose driver has CUDA's shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CudaVendor {
    /// NVIDIA: CUDA.
    Nvidia,
    /// AMD: HIP.
    Amd,
    /// Hygon: HIP, as DTK has it.
    Hygon,
    /// Moore Threads: MUSA.
    MooreThreads,
    /// Iluvatar: CoreX.
    Iluvatar,
    /// MetaX: MACA.
    MetaX,
}

impl CudaVendor {
    /// What its backend is called.
    pub fn name(self) -> &'static str {
        self.runtime().family.name
    }

    /// What is known of its runtime.
    pub(crate) fn runtime(self) -> &'static VendorRuntime {
        match self {
            CudaVendor::Nvidia => &nvidia::CUDA,
            CudaVendor::Amd => &amd::HIP,
            CudaVendor::Hygon => &amd::HYGON,
            CudaVendor::MooreThreads => &moore_threads::MUSA,
            CudaVendor::Iluvatar => &iluvatar::COREX,
            CudaVendor::MetaX => &metax::MACA,
        }
    }
}

/// A vendor's runtime.
pub(crate) struct VendorRuntime {
    /// Its devices, and the library that has them.
    pub(crate) family: &'static Family,
    /// What the driver calls its functions.
    pub(crate) driver: DriverNames,
    /// How that says what an answer means.
    pub(crate) words: ErrorWords,
    /// The library that compiles kernels.
    pub(crate) compiler: &'static RuntimeCompiler,
    /// What that calls its functions.
    pub(crate) compile: CompilerNames,
    /// Those that tell which architectures it compiles for, as numbers behind this prefix.
    pub(crate) archs: Option<(&'static str, ArchNames)>,
    /// What the compiler is told an architecture by. Without, it makes code for the device at hand.
    pub(crate) arch_option: Option<&'static str>,
    /// The language of kernels on a device of an architecture.
    pub(crate) dialect: fn(&str) -> CDialect,
    /// What bounds kernels there.
    pub(crate) limits: VendorLimits,
    /// What a device is named by in a copy from one to another.
    pub(crate) peers: PeerName,
    /// What it calls launches that are more than ordinary, and the first capability of a device that starts some early, as 90 of
    /// `sm_90`.
    pub(crate) extended: Option<(u32, ExtendedNames)>,
    /// Whose collectives its devices have.
    pub(crate) collectives: CollectiveVendor,
    /// Kernels of products that are written by hand for a device of an architecture, where there are some.
    pub(crate) products: fn(&str) -> Option<Arc<dyn NativeProducts>>,
    /// The same of attention over a cache.
    pub(crate) attention: fn(&str) -> Option<Arc<dyn NativeAttention>>,
}

/// What bounds kernels of a vendor's devices.
pub(crate) enum VendorLimits {
    /// What the driver tells, by CUDA's numbers of attributes.
    Asked,
    /// What the vendor's documents promise of every device.
    Known(DeviceLimits),
}

/// What a device is named by in a copy from one to another.
#[derive(Clone, Copy)]
pub(crate) enum PeerName {
    /// Its context.
    Context,
    /// Its number.
    Ordinal,
}
