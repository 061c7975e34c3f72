//! The Python package's native module: backends, kernel graphs, persistent kernels, models and their forward passes, as
//! Python calls them.
//!
//! It turns arguments into values of the crates below and their errors into exceptions; what is computed is theirs. The
//! package `yirage` around it (`python/yirage`) has names and shells alone. Pointers between Python and us are
//! `yirage-dlpack`'s; this crate has none. The command is in it as well, so that a wheel has one copy of the engine.
#![forbid(unsafe_code)]

mod backends;
mod command;
mod dtype;
mod failure;
mod graphs;
mod infer;
mod kind;
mod llm;
mod lock;
mod log;
mod others;
mod persistent;
mod process;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use yirage_process::last_resort;

// The system's, which notes what it refuses: only the command, once it owns the process, makes anything of that.
#[global_allocator]
static ALLOCATOR: last_resort::Allocator = last_resort::Allocator;

/// Raises an `ImportError` in a Python without its global lock, in which nothing here has been tried. A process's other
/// interpreters are refused by `PyO3`.
fn refuse_free_threading(py: Python<'_>) -> PyResult<()> {
    let version: String = py.import("sys")?.getattr("version")?.extract()?;
    if version.contains("free-threading") {
        let told = format!("yirage does not support free-threaded Python ({version}); use the ordinary build of it");
        return Err(PyImportError::new_err(told));
    }
    Ok(())
}

/// The native module of the package ``yirage``.
#[pymodule(gil_used = true)]
fn _yirage(module: &Bound<'_, PyModule>) -> PyResult<()> {
    refuse_free_threading(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    command::add(module)?;
    backends::add(module)?;
    graphs::add(module)?;
    persistent::add(module)?;
    llm::add(module)?;
    infer::add(module)
}
