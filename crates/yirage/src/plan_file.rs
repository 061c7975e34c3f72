//! Plan files, read and proved.

use crate::failure::CliFailure;
use std::path::Path;
use yirage_hal::Device;
use yirage_plancache::limits::FILE_BYTES;
use yirage_plancache::{PlanFile, PlanFileError, ProvedFile};

/// What a file says. Nothing of it is proved.
///
/// # Errors
/// [`CliFailure::File`], [`CliFailure::Plan`].
pub(crate) fn read(path: &Path) -> Result<PlanFile, CliFailure> {
    let text = yirage_mmap::read_text(path, FILE_BYTES)?;
    PlanFile::parse(&text).map_err(|source| failure(path, source))
}

/// The plan of a file, proved for a device.
///
/// # Errors
/// As those of [`read`], and [`CliFailure::Plan`] for a plan that the device cannot run.
pub(crate) fn proved(path: &Path, device: &dyn Device) -> Result<ProvedFile, CliFailure> {
    read(path)?.prove(&device.target()).map_err(|source| failure(path, source))
}

pub(crate) fn failure(path: &Path, source: PlanFileError) -> CliFailure {
    CliFailure::Plan { path: path.to_path_buf(), source }
}
