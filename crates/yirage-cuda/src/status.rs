//! What a call of the driver answers, as a driver's error.

use yirage_hal::driver::DriverError;

/// It was done.
pub(crate) const SUCCESS: i32 = 0;
/// What was asked about has not happened yet.
pub(crate) const NOT_READY: i32 = 600;
/// There is no memory for it.
pub(crate) const OUT_OF_MEMORY: i32 = 2;

/// Answers behind which a context answers nothing else any more, and what that means (`CUresult` in `cuda.h`).
const LOST: &[(i32, &str)] = &[
    (4, "the driver is shutting down"),
    (46, "the device is in use by another process in exclusive mode, or cannot be used now"),
    (201, "the context was destroyed by somebody else in this process"),
    (214, "memory had an error that its ECC could not correct: see `nvidia-smi -q -d ECC`"),
    (220, "the link to the device has an error that cannot be corrected"),
    (226, "the device was reset or fell off the bus"),
    (700, "a kernel touched memory that is not its own"),
    (702, "a kernel ran longer than the system lets one"),
    (709, "the context was destroyed by somebody else in this process"),
    (710, "a kernel's assertion failed"),
    (714, "the device's stack has an error"),
    (715, "a kernel has an instruction that the device does not know"),
    (716, "a kernel touched memory at an address that is not aligned"),
    (717, "a kernel touched memory of a wrong kind"),
    (718, "a kernel jumped to where no code is"),
    (719, "a kernel failed"),
    (721, "memory of another process failed"),
    (802, "the system is not ready: is `nvidia-fabricmanager` running?"),
];

/// A driver's answer that is no success, in the words that it has for it.
pub(crate) fn error(call: &'static str, code: i32, said: &str) -> DriverError {
    match LOST.iter().find(|(lost, _)| *lost == code) {
        Some((_, meaning)) => DriverError::Lost(format!("{call}: {said} ({code}): {meaning}")),
        None => DriverError::Failed { call, why: format!("{said} ({code})") },
    }
}

/// An error of ours in a call.
pub(crate) fn refused(call: &'static str, why: impl Into<String>) -> DriverError {
    DriverError::Failed { call, why: why.into() }
}

/// What this driver does not do.
pub(crate) fn unsupported(what: impl Into<String>, why: impl Into<String>) -> DriverError {
    DriverError::Unsupported { what: what.into(), why: why.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_context_is_a_loss_and_all_else_a_failure() {
        let lost = error("launch", 700, "CUDA_ERROR_ILLEGAL_ADDRESS");
        assert!(
            matches!(&lost, DriverError::Lost(why) if why.contains("(700)") && why.contains("not its own")),
            "{lost}"
        );
        assert_eq!(error("alloc", 1, "invalid"), refused("alloc", "invalid (1)"));
        assert!(LOST.windows(2).all(|pair| pair[0].0 < pair[1].0), "in ascending order, each once");
    }
}
