//! Ranks that are processes want Linux: elsewhere all of it is refused.

use crate::backends::Chosen;
use crate::failure::{PyFailure, PyOutcome};
use pyo3::prelude::*;
use std::sync::Arc;
use yirage_hal::{Device, OpenOptions};

fn refused(what: String) -> PyFailure {
    PyFailure::unsupported(what, "ranks that are processes run on Linux alone")
}

pub(crate) fn leading_device(
    _: Python<'_>,
    _: &Chosen,
    _: u32,
    _: OpenOptions,
    ranks: u32,
) -> PyOutcome<Arc<dyn Device>> {
    Err(refused(format!("tp={ranks}")))
}

/// There is no group to leave.
#[pyfunction]
fn leave_ranks() {}

/// Adds what the package calls in any case.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(leave_ranks, module)?)
}
