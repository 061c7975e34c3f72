//! `InferEngine`: a model's forward pass as Python calls it, by the names of InfiniLM. What plans are kept and how they ran
//! is told by `get_stats`.

mod config;
mod engine;
mod ids;
mod options;
mod stats;
mod weights;

use pyo3::prelude::*;

/// Adds the class to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    // The compiler that fuses is part of every build; whether a device has kernels for it is asked of an engine.
    module.add("FUSION_AVAILABLE", true)?;
    module.add_class::<engine::InferEngine>()
}
