//! Drivers whose functions have the shape of CUDA's: start, count, a device for each number, its name, its memory, its
//! attributes. Most makers took the shape over and changed the names.
//!
//! A function without which a device is not known is required. Where one fails that only describes it, the device is
//! listed without that fact, and with the reason.

use crate::error::ProbeError;
use crate::library::DriverLibrary;
use crate::library_report::{LibraryReport, optional_fact};
use crate::limits::MOST_DEVICES;
use yirage_hal::DeviceInfo;
use yirage_plan::KernelCapabilities;

/// The code of all these drivers for "there is no device".
const NO_DEVICE: i32 = 100;
/// Their code for a device that is named and not there.
pub(crate) const NO_SUCH_DEVICE: i32 = 101;

/// A driver's functions.
pub(crate) struct DriverApi {
    /// Starts it.
    pub(crate) start: &'static str,
    /// Its version.
    pub(crate) version: VersionQuery,
    /// How many devices there are.
    pub(crate) count: &'static str,
    /// A device by its number.
    pub(crate) device: &'static str,
    /// A device's name.
    pub(crate) name: &'static str,
    /// Its bytes of memory.
    pub(crate) memory: &'static str,
    /// Its multiprocessors: a function and the attribute's number.
    pub(crate) cores: Option<(&'static str, i32)>,
    /// Its architecture.
    pub(crate) arch: fn(&DriverLibrary, i64, &str) -> Result<String, ProbeError>,
    /// What kernels can compute with on that architecture.
    pub(crate) capabilities: fn(&str) -> KernelCapabilities,
}

/// How a driver tells its version.
pub(crate) enum VersionQuery {
    /// One number.
    Number {
        /// The function.
        call: &'static str,
        /// How the number is written.
        written: fn(i32) -> String,
        /// The oldest that will do, where that is known.
        oldest: Option<i32>,
    },
    /// Three numbers.
    Numbers {
        /// The function.
        call: &'static str,
        /// The oldest that will do.
        oldest: [i32; 3],
    },
}

impl DriverApi {
    /// Starts the driver and asks for its devices.
    ///
    /// # Errors
    /// Why it has none.
    pub(crate) fn ask(&self, backend: &'static str, library: &DriverLibrary) -> Result<LibraryReport, ProbeError> {
        let no_device = || ProbeError::NoDevice { path: library.path(), hidden: None };
        let or_none = |error| match error {
            ProbeError::Code { code: NO_DEVICE, .. } => no_device(),
            error => error,
        };
        // A driver that is too old says so before it is started, which may fail for that very reason.
        let version = self.version.read(library)?;
        library.of_number(self.start, 0).map_err(or_none)?;
        let count = library.number(self.count).map_err(or_none)?;
        let devices = match u32::try_from(count) {
            Ok(0) => return Err(no_device()),
            Ok(count) if count <= MOST_DEVICES => count,
            _ => {
                let (path, call) = (library.path(), self.count);
                return Err(ProbeError::Nonsense { path, call, answer: format!("{count} devices") });
            }
        };
        let devices = (0..devices).map(|ordinal| self.describe(backend, library, ordinal)).collect::<Result<_, _>>()?;
        Ok(LibraryReport { driver_version: Some(version), sdk_version: None, devices })
    }

    fn describe(&self, backend: &'static str, library: &DriverLibrary, ordinal: u32) -> Result<DeviceInfo, ProbeError> {
        let device = library.device(self.device, ordinal)?;
        let name = library.name(self.name, device)?;
        let mut info = DeviceInfo::new(backend, ordinal, name, "unknown");
        if let Some(arch) = optional_fact((self.arch)(library, device, &info.name), "architecture", &mut info) {
            info.capabilities = (self.capabilities)(&arch);
            info.arch = arch;
        }
        info.total_memory_bytes = optional_fact(library.bytes(self.memory, device), "memory", &mut info);
        if let Some((call, attribute)) = self.cores {
            let cores = optional_fact(library.attribute(call, attribute, device), "multiprocessors", &mut info);
            info.cores = cores.and_then(|cores| u32::try_from(cores).ok());
        }
        Ok(info)
    }
}

impl VersionQuery {
    fn read(&self, library: &DriverLibrary) -> Result<String, ProbeError> {
        let too_old = |found, needed| ProbeError::TooOld { path: library.path(), found, needed };
        match *self {
            VersionQuery::Number { call, written, oldest } => {
                let found = library.number(call)?;
                match oldest.filter(|&oldest| found < oldest) {
                    Some(oldest) => Err(too_old(written(found), written(oldest))),
                    None => Ok(written(found)),
                }
            }
            VersionQuery::Numbers { call, oldest } => {
                let found = library.three_numbers(call)?;
                let written = |[a, b, c]: [i32; 3]| format!("{a}.{b}.{c}");
                if found < oldest { Err(too_old(written(found), written(oldest))) } else { Ok(written(found)) }
            }
        }
    }
}

/// A version of CUDA's form: a thousand times the first number and ten times the second.
pub(crate) fn thousands(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Two attributes as an architecture: `sm_` and `8`, `9` are `sm_89`.
pub(crate) fn compute_capability(
    library: &DriverLibrary,
    call: &'static str,
    prefix: &str,
    [major, minor]: [i32; 2],
    device: i64,
) -> Result<String, ProbeError> {
    let major = library.attribute(call, major, device)?;
    Ok(format!("{prefix}{major}{}", library.attribute(call, minor, device)?))
}
