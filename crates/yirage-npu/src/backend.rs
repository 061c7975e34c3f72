//! The backend: which devices there are, and how one is opened.

use crate::driver::{AscendDriver, OperationCounters, OperationCounts};
use crate::library::{OperatorLibrary, ops_of_host};
use crate::node_operation::NodeTable;
use crate::runtime::{AscendContext, AscendRuntime};
use std::sync::Arc;
use yirage_hal::driver::DriverDevice;
use yirage_hal::{Backend, Device, DeviceInfo, HalError, OpenOptions, Unavailable};
use yirage_probe::{CompanionLibrary, ProbeEnvironment, ProbeError, families};

/// Huawei's devices.
pub struct AscendBackend {
    surroundings: ProbeEnvironment,
    counters: Arc<OperationCounters>,
}

impl AscendBackend {
    /// The backend on a machine with these surroundings. Nothing is loaded.
    pub fn new(surroundings: ProbeEnvironment) -> AscendBackend {
        AscendBackend { surroundings, counters: Arc::default() }
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

    fn context(&self, info: &DeviceInfo) -> Result<Arc<AscendContext>, HalError> {
        let surroundings = &self.surroundings;
        let cannot = |error: ProbeError, remedy: String| HalError::Unsupported {
            what: format!("computing with {}", info.name),
            why: format!("{error}; {remedy}"),
        };
        let runtime = families::ASCEND.library(surroundings);
        let runtime = runtime.map_err(|e| cannot(e.clone(), families::ASCEND.remedy(&e)))?;
        let operators = |library: &'static CompanionLibrary| {
            library.library(surroundings).map_err(|e| cannot(e.clone(), library.remedy(&e)))
        };
        let (descriptions, operators) = (operators(&families::NNOPBASE)?, operators(&families::OPAPI)?);
        let runtime = AscendRuntime::new(&runtime, &descriptions, &operators);
        let runtime = runtime.map_err(|e| cannot(e.clone(), families::OPAPI.remedy(&e)))?;
        Ok(AscendContext::new(runtime, info.ordinal)?)
    }

    /// The driver of a device, without a library of kernels.
    ///
    /// # Errors
    /// A device that is not there, a library that is missing or too old, and what the runtime says.
    pub fn driver(&self, ordinal: u32) -> Result<AscendDriver, HalError> {
        let context = self.context(&self.info(ordinal)?)?;
        Ok(AscendDriver::new(context, Arc::default(), self.counters.clone())?)
    }
}

/// What of the options means nothing here, and what is not computed by the device.
fn notes(options: &OpenOptions) -> Vec<String> {
    let ops = ops_of_host().join(", ");
    let host = format!(
        "no operators are called for these, the host evaluates them: {ops}; and all that meets quantised weights"
    );
    options.ignored_on("an accelerator").into_iter().chain([host]).collect()
}

impl Backend for AscendBackend {
    fn name(&self) -> &'static str {
        families::ASCEND.name
    }

    fn probe(&self) -> Result<Vec<DeviceInfo>, Unavailable> {
        families::ASCEND.look(&self.surroundings)
    }

    fn open(&self, ordinal: u32, options: &OpenOptions) -> Result<(Arc<dyn Device>, Vec<String>), HalError> {
        let mut info = self.info(ordinal)?;
        let (context, nodes) = (self.context(&info)?, Arc::<NodeTable>::default());
        let library =
            OperatorLibrary { chip: info.arch.clone(), capabilities: info.capabilities, nodes: nodes.clone() };
        info.facts.push(("on_host", ops_of_host().join(", ")));
        let driver = AscendDriver::new(context, nodes, self.counters.clone())?;
        Ok((Arc::new(DriverDevice::new(info, driver, library)), notes(options)))
    }
}
