//! Whether ranks can share a model, before any of them is started.

use crate::failure::{PyFailure, PyOutcome};
use crate::log::{Level, say};
use pyo3::prelude::*;
use std::path::Path;
use yirage_engine::RankDivision;
use yirage_model::Checkpoint;
use yirage_plan::ExpertDivision;

/// How so many ranks share a model's experts, of which `own` are to have their own, as the argument `name` says.
///
/// # Errors
/// An `OptionError` for another number than that of the ranks, or one.
pub(crate) fn expert_division(name: &str, own: u32, ranks: u32) -> PyOutcome<ExpertDivision> {
    match own {
        1 => Ok(ExpertDivision::Rows),
        own if own == ranks => Ok(ExpertDivision::Whole),
        _ => Err(PyFailure::option(format!("{name}={own}: expected 1, or {ranks}, as many as there are ranks"))),
    }
}

/// Refuses a model whose KV heads or experts so many ranks cannot share; says of which caches each rank has all. What else is wrong with a
/// model is said where it is loaded.
///
/// # Errors
/// An `OptionError` with the numbers of ranks that there may be.
pub(crate) fn check_division(py: Python<'_>, model: &Path, ranks: u32, experts: ExpertDivision) -> PyOutcome<()> {
    let division = py.detach(|| Checkpoint::open(model).and_then(|of| RankDivision::of(&of, ranks, experts)));
    let Ok(division) = division else { return Ok(()) };
    let division = division.map_err(|error| PyFailure::option(format!("tp={ranks}: {error}")))?;
    division.notice().map_or(Ok(()), |notice| Ok(say(py, Level::Info, &notice)?))
}

/// Refuses a model that cannot be cut into so many pipeline stages. What else is wrong with a model is said where it is loaded.
///
/// # Errors
/// An `OptionError` with the numbers of stages that there may be.
pub(crate) fn check_stages(py: Python<'_>, model: &Path, stages: u32) -> PyOutcome<()> {
    let cut = py.detach(|| Checkpoint::open(model).and_then(|of| RankDivision::check_stages(&of, stages)));
    cut.unwrap_or(Ok(())).map_err(|error| PyFailure::option(format!("pp={stages}: {error}")))
}
