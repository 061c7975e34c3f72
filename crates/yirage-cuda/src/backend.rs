//! The backend: which devices there are, and how one is opened.

use crate::code_store::CodeStore;
use crate::compiler::KernelCompiler;
use crate::driver::CudaDriver;
use crate::kernels::KernelToolchain;
use crate::limits::ALIGN;
use crate::native::{capability, has_instructions};
use crate::persistent::source;
use crate::runtime::{CudaContext, CudaRuntime, DeviceAttribute};
use crate::status::unsupported;
use crate::vendor::{CudaVendor, VendorLimits, VendorRuntime};
use std::sync::Arc;
use yirage_collectives::{RankCollectives, RankKernels};
use yirage_hal::driver::{DriverDevice, DriverError};
use yirage_hal::{Backend, Device, DeviceInfo, HalError, OpenOptions, Unavailable};
use yirage_kernels::{KernelLibrary, target};
use yirage_plan::DeviceLimits;
use yirage_probe::{ProbeEnvironment, ProbeError};
use yirage_ranks::{RankDevice, RankGroup};

/// `CU_COMPUTEMODE_PROHIBITED`.
const PROHIBITED: u32 = 2;

/// The variable that names the folder in which compiled kernels are kept. Without, they are compiled anew by each process.
const CODE_FOLDER: &str = "YIRAGE_KERNEL_CACHE";

/// A vendor's devices.
pub struct CudaBackend {
    vendor: &'static VendorRuntime,
    surroundings: ProbeEnvironment,
    /// The group that its device is a rank of.
    group: Option<Arc<RankGroup>>,
}

impl CudaBackend {
    /// The backend of a vendor, on a machine with these surroundings. Nothing is loaded.
    pub fn new(vendor: CudaVendor, surroundings: ProbeEnvironment) -> CudaBackend {
        CudaBackend { vendor: vendor.runtime(), surroundings, group: None }
    }

    /// The same, whose device is a rank of a group whose other ranks are in other processes: each has a device of its own, the one
    /// that is so far behind the one that is opened as its rank says.
    pub fn of_group(
        vendor: CudaVendor,
        surroundings: ProbeEnvironment,
        group: impl Into<Arc<RankGroup>>,
    ) -> CudaBackend {
        CudaBackend { group: Some(group.into()), ..CudaBackend::new(vendor, surroundings) }
    }

    fn info(&self, ordinal: u32) -> Result<DeviceInfo, HalError> {
        let devices = self.probe().map_err(|e| HalError::Device(e.to_string()))?;
        let there = devices.len();
        let no_such = || HalError::Option { option: "device", why: format!("there are {there}, and no {ordinal}") };
        devices.into_iter().find(|info| info.ordinal == ordinal).ok_or_else(no_such)
    }

    /// A device's context and what makes its kernels.
    fn toolchain(&self, info: &DeviceInfo) -> Result<KernelToolchain, HalError> {
        let (vendor, surroundings) = (self.vendor, &self.surroundings);
        let library = vendor.family.library(surroundings);
        let runtime = library.and_then(|library| CudaRuntime::new(&library, vendor));
        let runtime = runtime.map_err(|error| cannot_compute(info, &error, &vendor.family.remedy(&error)))?;
        let compiler = vendor.compiler.library(surroundings);
        let compiler = compiler.and_then(|library| KernelCompiler::new(&library, vendor));
        let compiler = compiler.map_err(|error| cannot_compute(info, &error, &vendor.compiler.remedy(&error)))?;
        compiler.check(&info.arch)?;
        let (arch, dialect) = (info.arch.clone(), (vendor.dialect)(&info.arch));
        let first = vendor.extended.as_ref().map(|(first, _)| *first);
        let is_new = first.is_some_and(|first| capability(&arch).is_some_and(|number| number >= first));
        let starts_early = is_new && runtime.is_extended();
        let context = CudaContext::new(runtime, info.ordinal)?;
        let kept = self.code_store(info, &compiler);
        // What blocks wait by is written for these architectures.
        let is_cooperative = has_instructions(&arch) && context.is_cooperative()?;
        let around_functions = source::around().to_owned();
        Ok(KernelToolchain { context, compiler, arch, dialect, starts_early, is_cooperative, around_functions, kept })
    }

    /// Where compiled kernels are kept: their code follows from all that is said here, and from their sources.
    fn code_store(&self, info: &DeviceInfo, compiler: &KernelCompiler) -> Option<CodeStore> {
        let folder = self.surroundings.variable(CODE_FOLDER).filter(|folder| !folder.is_empty())?;
        let (title, version) = (self.vendor.compiler.title, compiler.version());
        // The driver's own version, and that of the interface that it has.
        let [driver, sdk] = [&info.driver_version, &info.sdk_version].map(|of| of.as_deref().unwrap_or("unknown"));
        let maker = format!("{title} {version} for {} on {}, driver {driver}, {sdk}", info.arch, self.name());
        Some(CodeStore::new(folder.into(), maker))
    }

    /// What bounds kernels of a device, and what else is told of it.
    fn limits(&self, toolchain: &KernelToolchain, info: &mut DeviceInfo) -> Result<DeviceLimits, DriverError> {
        info.facts.push(("compiler", format!("{} {}", self.vendor.compiler.title, toolchain.compiler.version())));
        if self.vendor.extended.is_some() {
            let starts = if toolchain.starts_early { "in captured graphs" } else { "not by this driver or device" };
            info.facts.push(("early launches", starts.into()));
            let runs = if toolchain.is_cooperative { "yes" } else { "not by this driver or device" };
            info.facts.push(("persistent kernels", runs.into()));
        }
        let limits = match &self.vendor.limits {
            VendorLimits::Known(limits) => limits.clone(),
            VendorLimits::Asked => {
                let ecc = toolchain.context.attribute(DeviceAttribute::EccEnabled)?;
                info.facts.push(("ecc", if ecc == 0 { "off" } else { "on" }.into()));
                device_limits(&toolchain.context)?
            }
        };
        // A warp of the device's may be wider: kernels are written for subgroups of their dialect.
        Ok(DeviceLimits { subgroup_widths: vec![toolchain.dialect.subgroup], ..limits })
    }

    /// Checks that a device is for computing, where its driver tells.
    fn check_mode(&self, context: &CudaContext) -> Result<(), DriverError> {
        let is_told = matches!(self.vendor.limits, VendorLimits::Asked);
        if is_told && context.attribute(DeviceAttribute::ComputeMode)? == PROHIBITED {
            let why = "its compute mode is `prohibited`: set it back by the vendor's tool (`nvidia-smi -c DEFAULT`)";
            return Err(unsupported("computing with this device", why));
        }
        Ok(())
    }

    /// The device of this rank, where that of rank 0 has this number.
    fn own_ordinal(&self, first: u32) -> Result<u32, HalError> {
        let Some(group) = &self.group else { return Ok(first) };
        let there = self.probe().map_err(|e| HalError::Device(e.to_string()))?.len();
        RankCollectives::own_ordinal(group, first, there)
    }

    /// The device's place in a group, and what carries its collectives.
    fn rank(&self, group: &Arc<RankGroup>, ordinal: u32, notes: &mut Vec<String>) -> RankCollectives {
        let (rank, note) = RankCollectives::new(group.clone(), self.vendor.collectives, &self.surroundings, ordinal);
        notes.extend([note, "steps are not captured: ranks meet on the host".into()]);
        rank
    }

    /// The driver of a device, without a library of kernels.
    ///
    /// # Errors
    /// A device that is not there or not for computing, no compiler, and what the driver says.
    pub fn driver(&self, ordinal: u32) -> Result<CudaDriver, HalError> {
        let ordinal = self.own_ordinal(ordinal)?;
        let toolchain = self.toolchain(&self.info(ordinal)?)?;
        self.check_mode(&toolchain.context)?;
        let driver = CudaDriver::new(toolchain)?;
        Ok(match &self.group {
            Some(group) => driver.of_rank(self.rank(group, ordinal, &mut Vec::new())),
            None => driver,
        })
    }
}

/// Why nothing can be computed with a device that is there, and what to do.
fn cannot_compute(info: &DeviceInfo, error: &ProbeError, remedy: &str) -> HalError {
    HalError::Unsupported { what: format!("computing with {}", info.name), why: format!("{error}; {remedy}") }
}

/// What bounds kernels of a device.
fn device_limits(context: &CudaContext) -> Result<DeviceLimits, DriverError> {
    use DeviceAttribute::{MaxGridX, MaxGridY, MaxGridZ, MaxThreadsPerBlock, SharedBytesPerBlock};
    let of = |attribute| context.attribute(attribute);
    Ok(DeviceLimits {
        block_bytes: Some(of(SharedBytesPerBlock)?.into()),
        threads: Some(of(MaxThreadsPerBlock)?),
        grid: Some([of(MaxGridX)?, of(MaxGridY)?, of(MaxGridZ)?]),
        ..DeviceLimits::aligned(ALIGN)
    })
}

impl Backend for CudaBackend {
    fn name(&self) -> &'static str {
        self.vendor.family.name
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        self.vendor.family.look(&self.surroundings)
    }

    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        let ordinal = self.own_ordinal(ordinal)?;
        let mut info = self.info(ordinal)?;
        let mut toolchain = self.toolchain(&info)?;
        self.check_mode(&toolchain.context)?;
        let mut notes = options.ignored_on("an accelerator");
        if let Some(Err(why)) = toolchain.kept.as_ref().map(CodeStore::check) {
            toolchain.kept = None;
            notes.push(format!("compiled kernels are not kept: {why}"));
        }
        let is_kept = if toolchain.kept.is_some() { "kept on disk" } else { "not kept" };
        info.facts.push(("compiled kernels", is_kept.into()));
        let limits = self.limits(&toolchain, &mut info)?;
        let target = target(self.name(), &info.arch, limits);
        let library = match (self.vendor.products)(&info.arch) {
            Some(products) => KernelLibrary::with_products(target, products),
            None => KernelLibrary::new(target),
        };
        let library = match (self.vendor.attention)(&info.arch) {
            Some(attention) => library.and_attention(attention),
            None => library,
        };
        let driver = CudaDriver::new(toolchain)?;
        let Some(group) = self.group.as_ref().filter(|group| group.ranks() > 1) else {
            return Ok((Arc::new(DriverDevice::new(info, driver, library)), notes));
        };
        let driver = driver.of_rank(self.rank(group, ordinal, &mut notes));
        let kernels = RankKernels::new(library, self.name(), group.ranks());
        let device = Arc::new(DriverDevice::new(info, driver, kernels));
        Ok((Arc::new(RankDevice::new(device, group.clone(), options.experts)?), notes))
    }
}
