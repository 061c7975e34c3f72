//! What a library says when it is asked.

use crate::error::ProbeError;
use yirage_hal::DeviceInfo;

/// What a library says.
pub(crate) struct LibraryReport {
    /// The driver's version.
    pub(crate) driver_version: Option<String>,
    /// The version of the libraries above it.
    pub(crate) sdk_version: Option<String>,
    /// Its devices, in its order.
    pub(crate) devices: Vec<DeviceInfo>,
}

/// A fact that a device is better known with; without it, the reason stands among its facts.
pub(crate) fn optional_fact<T>(answer: Result<T, ProbeError>, what: &str, info: &mut DeviceInfo) -> Option<T> {
    answer.map_err(|why| info.facts.push(("not_told", format!("{what}: {why}")))).ok()
}
