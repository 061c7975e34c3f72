//! Errors of ours as a driver's; what a maker's library answers is in the maker's folder.

use yirage_hal::driver::DriverError;

/// An error of ours in a call.
pub(crate) fn refused(call: &'static str, why: impl Into<String>) -> DriverError {
    DriverError::Failed { call, why: why.into() }
}

/// What this driver does not do.
pub(crate) fn unsupported(what: impl Into<String>, why: impl Into<String>) -> DriverError {
    DriverError::Unsupported { what: what.into(), why: why.into() }
}
