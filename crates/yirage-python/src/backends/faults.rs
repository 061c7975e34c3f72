//! Failures on order, of simulated accelerators: what a program makes of them can be tested without a device that fails.

use super::table;
use crate::failure::{PyFailure, PyOutcome};
use crate::numbers::maybe_whole;
use pyo3::prelude::*;
use yirage_sim::{Faults, Settings};

/// Has the devices of ``sim`` fail that are opened from now on.
#[pyfunction]
#[pyo3(signature = (*, alloc = None, submit = None, kernel = None, lost = None, memory = None))]
pub(super) fn put_faults(
    py: Python<'_>,
    #[pyo3(from_py_with = maybe_whole)] alloc: Option<u64>,
    #[pyo3(from_py_with = maybe_whole)] submit: Option<u64>,
    #[pyo3(from_py_with = maybe_whole)] kernel: Option<u64>,
    #[pyo3(from_py_with = maybe_whole)] lost: Option<u64>,
    #[pyo3(from_py_with = maybe_whole)] memory: Option<u64>,
) -> PyOutcome<()> {
    let faults = Faults { alloc, submit, kernel, lost };
    if faults == Faults::default() && memory.is_none() {
        return Err(PyFailure::option("inject_faults: give one of alloc, submit, kernel, lost and memory at least"));
    }
    let usual = Settings::default();
    table::put_faulty(py, Settings { faults, memory: memory.unwrap_or(usual.memory), ..usual })
}

/// Has devices of ``sim`` that are opened from now on work.
#[pyfunction]
pub(super) fn take_faults(py: Python<'_>) {
    table::take_faulty(py);
}
