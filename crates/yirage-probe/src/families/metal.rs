//! Apple: a part of the system, which is in no file.
//!
//! Only whether there is a device is asked. Its name and memory take messages to objects, which a backend will send.

use crate::error::ProbeError;
use crate::family::{Family, LibraryLocation};
use crate::library::DriverLibrary;
use crate::library_report::LibraryReport;
use crate::visible::VisibilityVariables;
use std::ffi::c_void;
use yirage_hal::DeviceInfo;
use yirage_plan::KernelCapabilities;

/// Apple.
pub static METAL: Family = Family {
    name: "mps",
    title: "Apple Metal",
    system: "macos",
    location: LibraryLocation::System("/System/Library/Frameworks/Metal.framework/Metal"),
    visible: VisibilityVariables::NONE,
    driver_file: None,
    install: "it comes with the system",
    ask,
};

fn ask(backend: &'static str, library: &DriverLibrary) -> Result<LibraryReport, ProbeError> {
    let call = "MTLCreateSystemDefaultDevice";
    // SAFETY: the header's type. The device is the system's and stays for as long as the process does.
    let device = unsafe { library.function::<unsafe extern "C" fn() -> *mut c_void>(call)?() };
    if device.is_null() {
        return Err(ProbeError::NoDevice { path: library.path(), hidden: None });
    }
    let mut info = DeviceInfo::new(backend, 0, "the system's default device", std::env::consts::ARCH);
    // All of Apple's processors have these; what later ones add is told by messages.
    info.capabilities = KernelCapabilities { fp16: true, ..KernelCapabilities::LEAST };
    Ok(LibraryReport { driver_version: None, sdk_version: None, devices: vec![info] })
}
