//! `FusionScheduler`: sub-graphs of named operations, dispatched to kept plans, by the names of InfiniCore.
//!
//! ```text
//! sub-graph ─▶ steps (what each name stands for) ─▶ pieces ─▶ plan cache, or a callable of Python
//! ```

mod config;
mod group;
mod scheduler;
mod subgraph;

pub(crate) use config::{FusionConfig, counts, tell};

use pyo3::prelude::*;

/// Adds the class to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<scheduler::FusionScheduler>()
}
