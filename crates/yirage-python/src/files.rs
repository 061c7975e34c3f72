//! Names of files and folders that arguments give, before anything is written there.

use crate::failure::{PyFailure, PyOutcome};
use std::path::{Path, is_separator};

/// Checks a name to which endings are added: without a last part the file would be a hidden one.
///
/// # Errors
/// An `OptionError` that names the argument.
pub(crate) fn stem(name: &Path, argument: &str) -> PyOutcome<()> {
    let text = name.to_string_lossy();
    let last = text.rsplit(is_separator).next().unwrap_or_default();
    if last.trim_matches('.').is_empty() || text.contains('\0') {
        return Err(PyFailure::option(format!(
            "{argument}={text:?}: the name of a file is wanted, without its ending"
        )));
    }
    Ok(())
}

/// Checks the name of a folder: an empty one would be the working folder, which nobody named.
///
/// # Errors
/// An `OptionError` that names the argument.
pub(crate) fn folder(path: &Path, argument: &str) -> PyOutcome<()> {
    if path.as_os_str().is_empty() {
        return Err(PyFailure::option(format!(
            "{argument}='': the name of a folder is wanted, '.' for the working folder"
        )));
    }
    Ok(())
}
