//! `InferEngine`: a model's forward pass as Python calls it, by the names of InfiniLM. What plans are kept and how they ran
//! is told by `get_stats`.

mod config;
mod engine;
mod ids;
mod options;
mod weights;

use pyo3::prelude::*;

/// Adds the class to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<engine::InferEngine>()
}
