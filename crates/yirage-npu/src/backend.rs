//! The backend: which devices there are, and how one is opened.

use crate::driver::{NpuDriver, OperationCounters, OperationCounts};
use crate::library::{OperatorLibrary, ops_of_host};
use crate::maker::OpenedRuntime;
use crate::node_operation::NodeTable;
use crate::vendor::NpuVendor;
use std::sync::Arc;
use yirage_collectives::{RankCollectives, RankKernels};
use yirage_hal::driver::DriverDevice;
use yirage_hal::{Backend, Device, DeviceInfo, HalError, OpenOptions, Unavailable};
use yirage_ir::{DType, Format};
use yirage_probe::ProbeEnvironment;
use yirage_ranks::{RankDevice, RankGroup};

/// A maker's devices.
pub struct NpuBackend {
    vendor: NpuVendor,
    surroundings: ProbeEnvironment,
    /// The group that its device is a rank of.
    group: Option<Arc<RankGroup>>,
    counters: Arc<OperationCounters>,
}

impl NpuBackend {
    /// The backend on a machine with these surroundings. Nothing is loaded.
    pub fn new(vendor: NpuVendor, surroundings: ProbeEnvironment) -> NpuBackend {
        NpuBackend { vendor, surroundings, group: None, counters: Arc::default() }
    }

    /// The same, whose device is a rank of a group whose other ranks are in other processes: each has a device of its own, the one
    /// that is so far behind the one that is opened as its rank says.
    pub fn of_group(vendor: NpuVendor, surroundings: ProbeEnvironment, group: impl Into<Arc<RankGroup>>) -> NpuBackend {
        NpuBackend { group: Some(group.into()), ..NpuBackend::new(vendor, surroundings) }
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

    /// The device of this rank, where that of rank 0 has this number.
    fn own_ordinal(&self, first: u32) -> Result<u32, HalError> {
        let Some(group) = &self.group else { return Ok(first) };
        let there = self.probe().map_err(|e| HalError::Device(e.to_string()))?.len();
        RankCollectives::own_ordinal(group, first, there)
    }

    /// The device's place in its group, and what is told of it; of a group of one there is nothing to do.
    fn rank(&self, ordinal: u32) -> Option<(RankCollectives, String)> {
        let group = self.group.as_ref().filter(|group| group.ranks() > 1)?;
        let vendor = self.vendor.maker().collectives;
        Some(RankCollectives::new(group.clone(), vendor, &self.surroundings, ordinal))
    }

    fn opened(&self, info: &DeviceInfo) -> Result<OpenedRuntime, HalError> {
        (self.vendor.maker().open)(&self.surroundings, info)
    }

    /// The driver of a device, without a library of kernels.
    ///
    /// # Errors
    /// A device that is not there, a library that is missing or too old, and what the runtime says.
    pub fn driver(&self, ordinal: u32) -> Result<NpuDriver, HalError> {
        let ordinal = self.own_ordinal(ordinal)?;
        let opened = self.opened(&self.info(ordinal)?)?;
        let (support, rank) = (self.vendor.maker().support, self.rank(ordinal).map(|(rank, _)| rank));
        Ok(NpuDriver::new(opened.runtime, support, Arc::default(), self.counters.clone(), rank)?)
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
        let ordinal = self.own_ordinal(ordinal)?;
        let mut info = self.info(ordinal)?;
        let maker = self.vendor.maker();
        let (opened, nodes) = (self.opened(&info)?, Arc::<NodeTable>::default());
        let mut notes = notes(options, &opened.floats);
        let library = OperatorLibrary {
            maker,
            chip: info.arch.clone(),
            capabilities: info.capabilities,
            floats: opened.floats,
            nodes: nodes.clone(),
        };
        info.facts.push(("on_host", ops_of_host().join(", ")));
        let (rank, told) = self.rank(ordinal).unzip();
        notes.extend(told);
        let driver = NpuDriver::new(opened.runtime, maker.support, nodes, self.counters.clone(), rank)?;
        let Some(group) = self.group.as_ref().filter(|group| group.ranks() > 1) else {
            return Ok((Arc::new(DriverDevice::new(info, driver, library)), notes));
        };
        let kernels = RankKernels::new(library, self.name(), group.ranks());
        let device = Arc::new(DriverDevice::new(info, driver, kernels));
        Ok((Arc::new(RankDevice::new(device, group.clone(), options.experts)?), notes))
    }
}
