//! What can go wrong between a device and its driver.

use crate::error::HalError;
use thiserror::Error;

/// An error of a driver.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DriverError {
    /// The device has no room left.
    #[error("{wanted} bytes do not fit: {free} of {total} are free")]
    OutOfMemory {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes free.
        free: u64,
        /// Bytes of the device.
        total: u64,
    },
    /// The device is gone; nothing that is asked of it will work any more.
    #[error("the device is lost: {0}")]
    Lost(String),
    /// The driver does not do this at all.
    #[error("{what} is not supported: {why}")]
    Unsupported {
        /// What was asked for.
        what: String,
        /// Why it cannot be.
        why: String,
    },
    /// A call failed; the device goes on.
    #[error("{call}: {why}")]
    Failed {
        /// The call.
        call: &'static str,
        /// What the driver says.
        why: String,
    },
    /// The queue did not come so far in time.
    #[error("nothing came of {waited_ms} ms of waiting: the queue stands at {reached}, {wanted} is wanted")]
    Deadline {
        /// How long it was waited for.
        waited_ms: u64,
        /// The last value that the queue has signalled.
        reached: u64,
        /// The value waited for.
        wanted: u64,
    },
}

impl DriverError {
    /// As a device's error; `pool` is the memory that was asked for.
    pub(super) fn of_pool(self, pool: &'static str) -> HalError {
        match self {
            DriverError::OutOfMemory { wanted, .. } => HalError::OutOfMemory { pool, wanted, detail: self.to_string() },
            other => other.into(),
        }
    }
}

impl From<DriverError> for HalError {
    fn from(error: DriverError) -> HalError {
        match error {
            DriverError::OutOfMemory { .. } => error.of_pool("device"),
            DriverError::Unsupported { what, why } => HalError::Unsupported { what, why },
            DriverError::Lost(why) => HalError::Lost(why),
            DriverError::Failed { .. } | DriverError::Deadline { .. } => HalError::Device(error.to_string()),
        }
    }
}
