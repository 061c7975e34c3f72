//! The Python package's native module: backends, kernel graphs, models and their forward passes, as Python calls them.
//!
//! It turns arguments into values of the crates below and their errors into exceptions; what is computed is theirs. The
//! package `yirage` around it (`python/yirage`) has names and shells alone. Pointers between Python and us are
//! `yirage-dlpack`'s; this crate has none.
#![forbid(unsafe_code)]

mod backends;
mod dtype;
mod failure;
mod graphs;
mod infer;
mod kind;
mod llm;
mod log;
mod others;
mod process;

use pyo3::prelude::*;

/// The native module of the package ``yirage``.
#[pymodule]
fn _yirage(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    backends::add(module)?;
    graphs::add(module)?;
    llm::add(module)?;
    infer::add(module)
}
