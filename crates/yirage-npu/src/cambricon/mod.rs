//! Cambricon's MLUs: CNRT and the operators of CNNL.

#[allow(unsafe_code)]
mod description;
#[allow(unsafe_code)]
mod device;
mod numbers;
#[allow(unsafe_code)]
mod operators;
mod status;
#[allow(unsafe_code)]
mod symbols;
#[allow(unsafe_code)]
mod trial;

use crate::lowering::OperatorSupport;
use crate::maker::{NpuMaker, OpenedRuntime, cannot};
use device::MluDevice;
use symbols::{OperatorFunctions, RuntimeFunctions};
use yirage_collectives::CollectiveVendor;
use yirage_hal::{DeviceInfo, HalError};
use yirage_probe::{CompanionLibrary, ProbeEnvironment, families};

/// Cambricon.
pub(crate) const CAMBRICON: NpuMaker = NpuMaker {
    family: &families::CAMBRICON,
    operators: "cambricon/cnnl@1",
    host: "cambricon/host@1",
    variant: "cnnl",
    support: OperatorSupport::Elementary,
    collectives: CollectiveVendor::Cambricon,
    open,
};

fn open(surroundings: &ProbeEnvironment, info: &DeviceInfo) -> Result<OpenedRuntime, HalError> {
    let found = |library: &'static CompanionLibrary| {
        library.library(surroundings).map_err(|e| cannot(info, &e, library.remedy(&e)))
    };
    let (runtime, operators) = (found(&families::CNRT)?, found(&families::CNNL)?);
    let runtime = RuntimeFunctions::of(&runtime).map_err(|e| cannot(info, &e, families::CNRT.remedy(&e)))?;
    let operators = OperatorFunctions::of(&operators).map_err(|e| cannot(info, &e, families::CNNL.remedy(&e)))?;
    let device = MluDevice::new(runtime, operators, info.ordinal)?;
    device.know(trial::find(&device)?);
    let floats = device.floats(info.capabilities);
    Ok(OpenedRuntime { runtime: device, floats })
}
