//! What a call of CNRT or CNNL answers, as a driver's error with the answer's name.

use yirage_hal::driver::DriverError;

/// It was done.
pub(super) const SUCCESS: i32 = 0;
/// `cnrtErrorNotReady`.
pub(super) const NOT_READY: i32 = 1;
/// `cnrtErrorBusy`, which older versions say for the same.
pub(super) const BUSY: i32 = 632_014;
/// `cnrtErrorNoMem`.
pub(super) const OUT_OF_MEMORY: i32 = 100_100;

/// Names of CNRT's answers (`cnrtRet_t`), and what they mean where a device answers nothing else any more behind them.
const RUNTIME: &[(i32, &str, Option<&str>)] = &[
    (1, "cnrtErrorNotReady", None),
    (100_002, "cnrtErrorInit", None),
    (100_004, "cnrtErrorNoDevice", None),
    (100_005, "cnrtErrorDeviceInvalid", None),
    (100_006, "cnrtErrorArgsInvalid", None),
    (100_007, "cnrtErrorSys", None),
    (100_010, "cnrtErrorSysNoMem", None),
    (100_014, "cnrtErrorInvalidResourceHandle", None),
    (100_015, "cnrtErrorIllegalState", None),
    (100_050, "cnrtErrorNotSupport", None),
    (100_051, "cnrtErrorOpsNotPermitted", None),
    (100_060, "cnrtErrorQueue", None),
    (100_100, "cnrtErrorNoMem", None),
    (100_128, "cnrtErrorAssert", Some("an operator stopped at an assertion")),
    (100_132, "cnrtErrorKernelTrap", Some("an operator was trapped, or touched memory that is not its own")),
    (100_133, "cnrtErrorKernelUserTrap", Some("an operator trapped itself")),
    (632_006, "cnrtErrorDevice", None),
    (632_014, "cnrtErrorBusy", None),
    // What the driver answered is not told: it may be memory that is short as well.
    (632_015, "cnrtErrorCndrvFuncCall", None),
    (632_017, "cnrtErrorCndevFuncCall", None),
    (632_019, "cnrtErrorNoCnrtContext", None),
    (632_020, "cnrtErrorCndrvFuncNotFound", None),
    (999_991, "cnrtErrorUnknown", None),
];

/// Names of CNNL's answers (`cnnlStatus_t`), by their numbers.
const OPERATORS: [&str; 9] = [
    "CNNL_STATUS_SUCCESS",
    "CNNL_STATUS_NOT_INITIALIZED",
    "CNNL_STATUS_ALLOC_FAILED",
    "CNNL_STATUS_BAD_PARAM",
    "CNNL_STATUS_INTERNAL_ERROR",
    "CNNL_STATUS_ARCH_MISMATCH",
    "CNNL_STATUS_EXECUTION_FAILED",
    "CNNL_STATUS_NOT_SUPPORTED",
    "CNNL_STATUS_NUMERICAL_OVERFLOW",
];
/// `CNNL_STATUS_BAD_PARAM`.
const BAD_PARAM: i32 = 3;
/// `CNNL_STATUS_ARCH_MISMATCH`.
const ARCH_MISMATCH: i32 = 5;
/// `CNNL_STATUS_NOT_SUPPORTED`.
const NOT_SUPPORTED: i32 = 7;

/// Whether an operator was only told something that it does not do.
pub(super) fn is_refusal(code: i32) -> bool {
    matches!(code, BAD_PARAM | ARCH_MISMATCH | NOT_SUPPORTED)
}

/// What CNRT answers.
pub(super) fn of_runtime(call: &'static str, code: i32) -> Result<(), DriverError> {
    if code == SUCCESS {
        return Ok(());
    }
    let known = RUNTIME.iter().find(|(number, ..)| *number == code);
    let name = known.map_or("an answer that is not known", |(_, name, _)| name);
    match known.and_then(|(_, _, lost)| *lost) {
        Some(meaning) => Err(DriverError::Lost(format!("{call}: {name} ({code}): {meaning}"))),
        None => Err(DriverError::Failed { call, why: format!("{name} ({code})") }),
    }
}

/// What CNNL answers.
pub(super) fn of_operators(call: &'static str, code: i32) -> Result<(), DriverError> {
    if code == SUCCESS {
        return Ok(());
    }
    let known = usize::try_from(code).ok().and_then(|code| OPERATORS.get(code));
    let name = known.copied().unwrap_or("an answer that is not known");
    Err(DriverError::Failed { call, why: format!("{name} ({code})") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_a_device_is_a_loss_and_every_answer_has_its_name() {
        let lost = of_runtime("wait", 100_132).unwrap_err();
        assert!(matches!(&lost, DriverError::Lost(why) if why.contains("cnrtErrorKernelTrap (100132)")), "{lost}");
        let failed = of_operators("cnnlCopy_v2", 3).unwrap_err();
        assert_eq!(failed, DriverError::Failed { call: "cnnlCopy_v2", why: "CNNL_STATUS_BAD_PARAM (3)".into() });
        assert!(of_operators("cnnlCopy_v2", 77).unwrap_err().to_string().contains("not known (77)"));
        assert!(RUNTIME.windows(2).all(|pair| pair[0].0 < pair[1].0), "in ascending order, each once");
    }
}
