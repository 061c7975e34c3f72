//! What is known of a maker whose library of operators computes.

use crate::lowering::OperatorSupport;
use crate::runtime::AcceleratorRuntime;
use std::sync::Arc;
use yirage_collectives::CollectiveVendor;
use yirage_hal::{DeviceInfo, HalError};
use yirage_ir::DType;
use yirage_probe::{Family, ProbeEnvironment, ProbeError};

/// A maker's libraries.
pub(crate) struct NpuMaker {
    /// Its devices, and the library that has them.
    pub(crate) family: &'static Family,
    /// The name that plans have for operators.
    pub(crate) operators: &'static str,
    /// The name that plans have for what the host evaluates.
    pub(crate) host: &'static str,
    /// The variant of the operators.
    pub(crate) variant: &'static str,
    /// Which operators its library has.
    pub(crate) support: OperatorSupport,
    /// Whose collectives its devices have.
    pub(crate) collectives: CollectiveVendor,
    /// Opens a device.
    pub(crate) open: fn(&ProbeEnvironment, &DeviceInfo) -> Result<OpenedRuntime, HalError>,
}

/// A device whose libraries were loaded.
pub(crate) struct OpenedRuntime {
    pub(crate) runtime: Arc<dyn AcceleratorRuntime>,
    /// Floats that operators compute with there, f32 first.
    pub(crate) floats: Vec<DType>,
}

/// Why a device cannot be computed with, and what to do.
pub(crate) fn cannot(info: &DeviceInfo, error: &ProbeError, remedy: String) -> HalError {
    HalError::Unsupported { what: format!("computing with {}", info.name), why: format!("{error}; {remedy}") }
}
