//! The backend: which devices there are, and how one is opened.

use crate::driver::{NpuDriver, OperationCounters, OperationCounts};
use crate::library::{OperatorLibrary, ops_of_host};
use crate::maker::OpenedRuntime;
use crate::node_operation::NodeTable;
use crate::vendor::NpuVendor;
use std::sync::Arc;
use yirage_hal::driver::DriverDevice;
use yirage_hal::{Backend, Device, DeviceInfo, HalError, OpenOptions, Unavailable};
use yirage_ir::{DType, Format};
use yirage_probe::ProbeEnvironment;

/// A maker's devices.
pub struct NpuBackend {
    vendor: NpuVendor,
    surroundings: ProbeEnvironment,
    counters: Arc<OperationCounters>,
}

impl NpuBackend {
    /// The backend on a machine with these surroundings. Nothing is loaded.
    pub fn new(vendor: NpuVendor, surroundings: ProbeEnvironment) -> NpuBackend {
        NpuBackend { vendor, surroundings, counters: Arc::default() }
    }

    /// Operations that devices which were opened here have run.
    pub fn counts(&self) -> OperationCounts {
        self.counters.counts()
    }

    fn info(&self, ordinal: u32) -> Result<DeviceInfo, HalError> {
        let devices = self.probe().map_err(|e| HalError::Device(e.to_string()))?;
        let there = devices.len();
        let no_such = || HalError::Option { option: "device", why: format!("there are {there}, and no {ordinal}") };
        devices.into_iter().find(|info| info.ordinal == ordinal).ok_or_else(no_such)
    }

    fn opened(&self, info: &DeviceInfo) -> Result<OpenedRuntime, HalError> {
        (self.vendor.maker().open)(&self.surroundings, info)
    }

    /// The driver of a device, without a library of kernels.
    ///
    /// # Errors
    /// A device that is not there, a library that is missing or too old, and what the runtime says.
    pub fn driver(&self, ordinal: u32) -> Result<NpuDriver, HalError> {
        let opened = self.opened(&self.info(ordinal)?)?;
        let support = self.vendor.maker().support;
        Ok(NpuDriver::new(opened.runtime, support, Arc::default(), self.counters.clone())?)
    }
}

/// What of the options means nothing here, and what is not computed by the device.
fn notes(options: &OpenOptions, floats: &[DType]) -> Vec<String> {
    let ops = ops_of_host().join(", ");
    let host = format!(
        "no operators are called for these, the host evaluates them: {ops}; and all that meets quantised weights"
    );
    let narrow = [("f16", Format::F16), ("bf16", Format::BF16)];
    let missing = narrow.into_iter().filter(|&(_, format)| !floats.contains(&DType::Stored(format)));
    let missing =
        missing.map(|(name, _)| format!("no operators compute with {name} here: the host evaluates what has it"));
    options.ignored_on("an accelerator").into_iter().chain([host]).chain(missing).collect()
}

impl Backend for NpuBackend {
    fn name(&self) -> &'static str {
        self.vendor.maker().family.name
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        self.vendor.maker().family.look(&self.surroundings)
    }

    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        let mut info = self.info(ordinal)?;
        let maker = self.vendor.maker();
        let (opened, nodes) = (self.opened(&info)?, Arc::<NodeTable>::default());
        let notes = notes(options, &opened.floats);
        let library = OperatorLibrary {
            maker,
            chip: info.arch.clone(),
            capabilities: info.capabilities,
            floats: opened.floats,
            nodes: nodes.clone(),
        };
        info.facts.push(("on_host", ops_of_host().join(", ")));
        let driver = NpuDriver::new(opened.runtime, maker.support, nodes, self.counters.clone())?;
        Ok((Arc::new(DriverDevice::new(info, driver, library)), notes))
    }
}
