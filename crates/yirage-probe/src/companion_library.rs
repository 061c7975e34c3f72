//! Libraries that a maker has beside its driver, such as one of operators: where they are, and how they come onto a machine.

use crate::environment::ProbeEnvironment;
use crate::error::ProbeError;
use crate::library::DriverLibrary;
use crate::search::{LibrarySearch, usable_file};

/// A library beside a maker's driver.
pub struct CompanionLibrary {
    /// Where it is.
    pub(crate) search: LibrarySearch,
    /// How it comes onto a machine.
    pub(crate) install: &'static str,
}

impl CompanionLibrary {
    /// Loads it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn library(&self, surroundings: &ProbeEnvironment) -> Result<DriverLibrary, ProbeError> {
        DriverLibrary::load(&usable_file(&self.search, &[], surroundings)?.0)
    }

    /// What to do about an error of its own.
    pub fn remedy(&self, error: &ProbeError) -> String {
        error.remedy(self.install)
    }
}
