//! The three libraries, and what they say of a failure.

use super::status::{self, SUCCESS};
use super::symbols::{DescriptionFunctions, OperatorFunctions, RuntimeFunctions};
use std::ffi::CStr;
use yirage_hal::driver::DriverError;
use yirage_probe::{DriverLibrary, ProbeError};

/// The three libraries.
pub(crate) struct AscendRuntime {
    pub(super) functions: RuntimeFunctions,
    pub(crate) descriptions: DescriptionFunctions,
    pub(crate) operators: OperatorFunctions,
}

impl AscendRuntime {
    /// Of libraries that stay loaded.
    pub(crate) fn new(
        runtime: &DriverLibrary,
        descriptions: &DriverLibrary,
        operators: &DriverLibrary,
    ) -> Result<AscendRuntime, ProbeError> {
        Ok(AscendRuntime {
            functions: RuntimeFunctions::of(runtime)?,
            descriptions: DescriptionFunctions::of(descriptions)?,
            operators: OperatorFunctions::of(operators)?,
        })
    }

    /// What the runtime says of the last failure of this thread.
    fn said(&self) -> String {
        // SAFETY: it takes nothing.
        let text = unsafe { (self.functions.recent_error)() };
        if text.is_null() {
            return String::new();
        }
        // SAFETY: the runtime's text ends with a 0 and stays until the next call of this thread.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().trim().to_owned()
    }

    pub(crate) fn check(&self, call: &'static str, code: i32) -> Result<(), DriverError> {
        if code == SUCCESS { Ok(()) } else { Err(status::error(call, code, &self.said())) }
    }
}
