//! Ranks that are processes: those that a model starts for itself, and those that a program is one of.

mod group;
mod leader;
mod member;
mod place;

pub(crate) use leader::leading_device;
pub(crate) use member::{RankMembership, member_device};

use pyo3::prelude::*;

/// Adds what is here to the module.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<group::ProcessGroup>()?;
    module.add_function(wrap_pyfunction!(place::leave_ranks, module)?)?;
    module.add_function(wrap_pyfunction!(place::run_ranks, module)?)
}
