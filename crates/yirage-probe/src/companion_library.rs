//! Libraries that a maker has beside its driver, such as one of operators or of collectives: where they are, and how they come
//! onto a machine.

use crate::environment::ProbeEnvironment;
use crate::error::ProbeError;
use crate::library::DriverLibrary;
use crate::python;
use crate::search::{LibrarySearch, usable_file};

/// A library beside a maker's driver.
pub struct CompanionLibrary {
    /// Where it is.
    pub(crate) search: LibrarySearch,
    /// Folders of Python's packages in which the maker's wheels have it.
    pub(crate) in_packages: &'static [&'static str],
    /// How it comes onto a machine.
    pub(crate) install: &'static str,
}

impl CompanionLibrary {
    /// Loads it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn library(&self, surroundings: &ProbeEnvironment) -> Result<DriverLibrary, ProbeError> {
        let folders = python::package_folders(self.in_packages, surroundings);
        DriverLibrary::load(&usable_file(&self.search, &folders, surroundings)?.0)
    }

    /// What to do about an error of its own.
    pub fn remedy(&self, error: &ProbeError) -> String {
        error.remedy(self.install)
    }
}
