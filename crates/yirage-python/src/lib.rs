//! The Python package's native module: backends, kernel graphs, persistent kernels, models and their forward passes, as
//! Python calls them.
//!
//! It turns arguments into values of the crates below and their errors into exceptions; what is computed is theirs. The
//! package `yirage` around it (`python/yirage`) has names and shells alone. Pointers between Python and us are
//! `yirage-dlpack`'s; this crate has none. The command is in it as well, so that a wheel has one copy of the engine.
#![forbid(unsafe_code)]

mod backends;
mod command;
mod division;
mod dtype;
mod failure;
mod files;
mod fusion;
mod graphs;
mod infer;
mod kind;
mod llm;
mod lock;
mod log;
mod numbers;
mod others;
mod persistent;
mod process;
#[cfg_attr(not(target_os = "linux"), path = "ranks_elsewhere.rs")]
mod ranks;

use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use yirage_process::last_resort;

// The system's, which notes what it refuses: only the command, once it owns the process, makes anything of that.
#[global_allocator]
static ALLOCATOR: last_resort::Allocator = last_resort::Allocator;

/// Raises an `ImportError` where nothing here has been tried: in a Python without its global lock, and in a second
/// interpreter of a process, which would share what this library keeps with the first.
fn refuse_what_was_not_tried(py: Python<'_>) -> PyResult<()> {
    static SYS_OF_THE_FIRST: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let sys = py.import("sys")?;
    let version: String = sys.getattr("version")?.extract()?;
    if version.contains("free-threading") {
        let told = format!("yirage does not support free-threaded Python ({version}): use the ordinary build of it");
        return Err(PyImportError::new_err(told));
    }
    // Each interpreter has a module `sys` of its own.
    if !SYS_OF_THE_FIRST.get_or_init(py, || sys.clone().unbind()).bind(py).is(&sys) {
        let told =
            "yirage is imported in another interpreter of this process: use it in that one, or in another process";
        return Err(PyImportError::new_err(told));
    }
    Ok(())
}

/// The native module of the package ``yirage``.
#[pymodule(gil_used = true)]
fn _yirage(module: &Bound<'_, PyModule>) -> PyResult<()> {
    refuse_what_was_not_tried(module.py())?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    command::add(module)?;
    backends::add(module)?;
    graphs::add(module)?;
    persistent::add(module)?;
    llm::add(module)?;
    fusion::add(module)?;
    ranks::add(module)?;
    infer::add(module)
}
