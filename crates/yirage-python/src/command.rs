//! The `yirage` command, for the program that the package installs.

use pyo3::prelude::*;

/// Runs the command with these arguments, of which the first is its name, and gives the exit code. The process is the
/// command's own from then on: Ctrl-C, limits and too little memory end it as they end the program.
#[pyfunction]
fn run_command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
    py.detach(|| yirage::main(arguments))
}

/// Adds it to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(run_command, module)?)
}
