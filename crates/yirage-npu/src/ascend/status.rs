//! What a call of the runtime or of an operator answers, as a driver's error.

use yirage_hal::driver::DriverError;

/// It was done.
pub(crate) const SUCCESS: i32 = 0;
/// It was started by somebody else in this process.
pub(crate) const STARTED_BEFORE: i32 = 100_002;
/// There is no memory for it.
pub(crate) const OUT_OF_MEMORY: i32 = 207_001;
/// The stream is not done in this time.
pub(crate) const NOT_YET: i32 = 507_046;

/// Answers behind which a context answers nothing else any more, and what that means (`rt_error_codes.h`).
const LOST: &[(i32, &str)] = &[
    (107_022, "what the device ran was aborted"),
    (507_010, "the task scheduler's heart does not beat: see `npu-smi info`"),
    (507_014, "an operator ran longer than the system lets one"),
    (507_015, "an operator touched memory that is not its own, or failed"),
    (507_016, "an operator was trapped"),
    (507_017, "an operator on the device's processors ran too long"),
    (507_018, "an operator on the device's processors failed"),
    (507_034, "an operator ran longer than the system lets one"),
    (507_035, "an operator touched memory that is not its own, or failed"),
    (507_036, "an operator was trapped"),
    (507_053, "memory has an error"),
    (507_054, "memory had an error that its ECC could not correct: see `npu-smi info -t ecc`"),
    (507_056, "the link to the device has an error"),
    (507_899, "the driver failed: see `npu-smi info` and the logs below ~/ascend/log"),
];

/// An answer that is no success, in the words that the runtime has for it.
pub(crate) fn error(call: &'static str, code: i32, said: &str) -> DriverError {
    let said = if said.is_empty() { "no reason is told" } else { said };
    match LOST.iter().find(|(lost, _)| *lost == code) {
        Some((_, meaning)) => DriverError::Lost(format!("{call}: {said} ({code}): {meaning}")),
        None => DriverError::Failed { call, why: format!("{said} ({code})") },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_context_is_a_loss_and_all_else_a_failure() {
        let lost = error("operator", 507_015, "EZ9999");
        assert!(matches!(&lost, DriverError::Lost(why) if why.contains("EZ9999 (507015)")), "{lost}");
        let failed = DriverError::Failed { call: "aclnnAdd", why: "no reason is told (161002)".into() };
        assert_eq!(error("aclnnAdd", 161_002, ""), failed);
        assert!(LOST.windows(2).all(|pair| pair[0].0 < pair[1].0), "in ascending order, each once");
    }
}
