//! What one maker's devices have in common, and how they are looked for.

use crate::deadline::within;
use crate::driver::NO_SUCH_DEVICE;
use crate::environment::ProbeEnvironment;
use crate::error::ProbeError;
use crate::library::DriverLibrary;
use crate::library_report::LibraryReport;
use crate::limits::MOST_VERSION_BYTES;
use crate::search::{LibrarySearch, usable_file};
use crate::visible::VisibilityVariables;
use std::path::Path;
use yirage_hal::{DeviceInfo, Unavailable};
use yirage_mmap::read_text;

/// One maker's devices.
pub struct Family {
    /// The backend's name.
    pub name: &'static str,
    /// What it is, for people.
    pub title: &'static str,
    /// The operating system that has it, as Rust names it.
    pub(crate) system: &'static str,
    /// Where its libraries are.
    pub(crate) location: LibraryLocation,
    /// Variables that hide its devices.
    pub visible: VisibilityVariables,
    /// The file of the system that has the driver's own version, for a library that tells the level of its interface instead.
    pub(crate) driver_file: Option<&'static str>,
    /// How its libraries come onto a machine.
    pub(crate) install: &'static str,
    /// Asks a loaded library for its devices.
    pub(crate) ask: fn(&'static str, &DriverLibrary) -> Result<LibraryReport, ProbeError>,
}

/// Where a family's libraries are.
pub(crate) enum LibraryLocation {
    /// In files that are looked for.
    Files(LibrarySearch),
    /// A part of the system, which is no file.
    System(&'static str),
}

impl Family {
    /// Looks for the family's devices. Loads its library where there is one.
    ///
    /// # Errors
    /// Why there is no device, and what to do.
    pub fn look(&'static self, surroundings: &ProbeEnvironment) -> Result<Vec<DeviceInfo>, Unavailable> {
        self.devices(surroundings).map_err(|error| Unavailable {
            backend: self.name,
            why: error.to_string(),
            remedy: self.remedy(&error),
            present: !matches!(error, ProbeError::NotFound { .. } | ProbeError::OtherSystem { .. }),
        })
    }

    fn devices(&'static self, surroundings: &ProbeEnvironment) -> Result<Vec<DeviceInfo>, ProbeError> {
        if surroundings.system() != self.system {
            return Err(ProbeError::OtherSystem { needed: self.system, found: surroundings.system() });
        }
        let wanted = match &self.location {
            LibraryLocation::Files(wanted) => wanted,
            LibraryLocation::System(path) => return self.query_library(Path::new(path), surroundings),
        };
        let (file, passed_over) = usable_file(wanted, &[], surroundings)?;
        let mut devices = self.query_library(&file, surroundings)?;
        let facts = passed_over.iter().map(|error: &ProbeError| ("passed_over", error.to_string()));
        devices.iter_mut().for_each(|info| info.facts.extend(facts.clone()));
        Ok(devices)
    }

    /// Loads the family's library, for a backend that computes with it: the one whose devices [`Self::look`] finds.
    ///
    /// # Errors
    /// Why there is none, and what to do.
    pub fn library(&self, surroundings: &ProbeEnvironment) -> Result<DriverLibrary, ProbeError> {
        match &self.location {
            LibraryLocation::Files(wanted) => DriverLibrary::load(&usable_file(wanted, &[], surroundings)?.0),
            LibraryLocation::System(path) => DriverLibrary::load(Path::new(path)),
        }
    }

    /// What to do about an error of its library.
    pub fn remedy(&self, error: &ProbeError) -> String {
        error.remedy(self.install)
    }

    /// The visible devices of the library at `path`.
    fn query_library(
        &'static self,
        path: &Path,
        surroundings: &ProbeEnvironment,
    ) -> Result<Vec<DeviceInfo>, ProbeError> {
        let (file, hidden) = (path.to_path_buf(), self.visible.hidden(surroundings));
        let answer = within(surroundings.deadline(), path, move || (self.ask)(self.name, &DriverLibrary::load(&file)?));
        let answer = answer.map_err(|error| match (error, &hidden) {
            (ProbeError::NoDevice { path, .. }, _) => ProbeError::NoDevice { path, hidden: hidden.clone() },
            // A list that names what is not there ends the driver's start, and is to blame for it.
            (ProbeError::Code { path, code: NO_SUCH_DEVICE, .. }, Some(_)) => {
                ProbeError::NoDevice { path, hidden: hidden.clone() }
            }
            (error, _) => error,
        })?;
        let (driver_version, sdk_version) = match self.driver_file {
            Some(file) => (written_in(&surroundings.path(Path::new(file))), answer.driver_version),
            None => (answer.driver_version, answer.sdk_version),
        };
        let described = answer.devices.into_iter().map(|mut info| {
            info.driver_version = driver_version.clone();
            info.sdk_version = sdk_version.clone();
            info.facts.push(("library", path.display().to_string()));
            info
        });
        let devices = self.visible.apply(described.collect(), surroundings);
        if devices.is_empty() { Err(ProbeError::NoDevice { path: path.to_path_buf(), hidden }) } else { Ok(devices) }
    }
}

/// The driver's version in the system's own words: the first word of a file's first line that is numbers with points
/// between them. None where there is no such file or word.
fn written_in(file: &Path) -> Option<String> {
    let text = read_text(file, MOST_VERSION_BYTES).ok()?;
    let is_version = |word: &&str| {
        let mut numbers = word.split('.');
        word.contains('.') && numbers.all(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
    };
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_owned)
}
