//! What can go wrong between a device and its driver.

use crate::error::HalError;
use thiserror::Error;

/// An error of a driver.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum DriverError {
    /// The device has no room left.
    #[error("{wanted} bytes do not fit{}", room(*.free, *.total))]
    OutOfMemory {
        /// Bytes asked for.
        wanted: u64,
        /// Bytes free; none where the runtime does not say.
        free: Option<u64>,
        /// Bytes of the device; none where the runtime does not say.
        total: Option<u64>,
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

/// What is known of a device's memory.
fn room(free: Option<u64>, total: Option<u64>) -> String {
    match (free, total) {
        (Some(free), Some(total)) => format!(": {free} of {total} are free"),
        (Some(free), None) => format!(": {free} are free"),
        (None, Some(total)) => format!(": the device has {total}, and does not say how many are free"),
        (None, None) => ", and the device does not say how many are free".into(),
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_of_memory_is_no_number() {
        let said = |free, total| DriverError::OutOfMemory { wanted: 9, free, total }.to_string();
        assert_eq!(said(Some(3), Some(8)), "9 bytes do not fit: 3 of 8 are free");
        assert_eq!(said(Some(3), None), "9 bytes do not fit: 3 are free");
        assert!(said(None, Some(8)).ends_with(": the device has 8, and does not say how many are free"));
        assert_eq!(said(None, None), "9 bytes do not fit, and the device does not say how many are free");
    }
}
