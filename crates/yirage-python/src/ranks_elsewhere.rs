//! Ranks that are processes want Linux: elsewhere all of it is refused.

use crate::backends::Chosen;
use crate::failure::{PyFailure, PyOutcome};
use pyo3::prelude::*;
use std::sync::Arc;
use yirage_hal::{Device, OpenOptions};
use yirage_persistent::KernelBuilder;
use yirage_ranks::RankRole;

fn refused(what: String) -> PyFailure {
    PyFailure::unsupported(what, "ranks that are processes run on Linux alone")
}

pub(crate) fn leading_device(
    _: Python<'_>,
    _: &Chosen,
    _: u32,
    _: OpenOptions,
    (ranks, role): (u32, RankRole),
) -> PyOutcome<Arc<dyn Device>> {
    let argument = if role == RankRole::Stage { "pp" } else { "tp" };
    Err(refused(format!("{argument}={ranks}")))
}

/// A place among ranks, of which there are none here.
#[derive(Clone)]
pub(crate) enum NoMembership {}

pub(crate) use NoMembership as RankMembership;

impl NoMembership {
    pub(crate) fn rank(&self) -> usize {
        match *self {}
    }

    pub(crate) fn meet(&self, _: &KernelBuilder) -> PyOutcome<()> {
        match *self {}
    }
}

/// Nobody has started this process as a rank.
pub(crate) fn member_device(
    _: Python<'_>,
    _: &Chosen,
    _: u32,
    _: OpenOptions,
    _: (u32, Option<u32>),
) -> PyOutcome<Option<(Arc<dyn Device>, RankMembership)>> {
    Ok(None)
}

/// There is no group to leave.
#[pyfunction]
fn leave_ranks() {}

/// Adds what the package calls in any case.
pub(crate) fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(leave_ranks, module)?)
}
