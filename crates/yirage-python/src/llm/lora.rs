//! Which adapters an `LLM` has, as its caller names them.

use crate::failure::{PyFailure, PyOutcome};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use std::path::{Path, PathBuf};
use yirage_engine::EngineAdapter;
use yirage_model::{LoraAdapter, ModelError};

/// Paths and scales: of one path, one path with its scale, or a list of such.
pub(super) fn adapters(given: &Bound<'_, PyAny>) -> PyOutcome<Vec<(PathBuf, f32)>> {
    match given.cast::<PyList>() {
        Ok(list) => list.iter().map(|one| adapter(&one)).collect(),
        Err(_) => Ok(vec![adapter(given)?]),
    }
}

fn adapter(given: &Bound<'_, PyAny>) -> PyOutcome<(PathBuf, f32)> {
    let wanted = || PyFailure::option(format!("lora={given}: a path, (path, scale), or a list of these is wanted"));
    match given.cast::<PyTuple>() {
        Ok(pair) => pair.extract().map_err(|_| wanted()),
        Err(_) => Ok((given.extract().map_err(|_| wanted())?, 1.0)),
    }
}

/// Reads them.
pub(super) fn open(given: &[(PathBuf, f32)]) -> Result<Vec<EngineAdapter>, ModelError> {
    let name = |path: &Path| path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
    let one = |(path, scale): &(PathBuf, f32)| {
        Ok(EngineAdapter { name: name(path), adapter: LoraAdapter::open(path)?, scale: *scale })
    };
    given.iter().map(one).collect()
}
