//! Whether two graphs compute the same.

use super::kernel::KNGraph;
use crate::failure::PyOutcome;
use pyo3::prelude::*;
use yirage_search::equal::{BothWays, EqualityOptions};

/// What ``equivalent`` found: true where the graphs compute the same, with what was shown or what speaks against it.
#[pyclass(frozen, module = "yirage")]
pub(crate) struct Equivalence {
    both: BothWays,
}

#[pymethods]
impl Equivalence {
    /// Whether they compute the same: one may stand for the other.
    #[getter]
    fn equal(&self) -> bool {
        self.both.shown().is_ok()
    }

    /// Whether ``b`` may stand for ``a``: it takes no other inputs and is as good in floats.
    #[getter]
    fn b_for_a(&self) -> bool {
        self.both.second_for_first.is_ok()
    }

    /// Whether ``a`` may stand for ``b``.
    #[getter]
    fn a_for_b(&self) -> bool {
        self.both.first_for_second.is_ok()
    }

    /// What was shown, or why they are not.
    #[getter]
    fn reason(&self) -> String {
        let shown = "every test over finite fields and in floats passed";
        match (&self.both.second_for_first, &self.both.first_for_second) {
            (Ok(_), Ok(_)) => shown.into(),
            (Ok(_), Err(why)) => format!("{shown} for b in the place of a; a may not stand for b: {why}"),
            (Err(why), Ok(_)) => format!("{shown} for a in the place of b; b may not stand for a: {why}"),
            (Err(why), Err(_)) => why.to_string(),
        }
    }

    /// Everything that was tested, as text that can be checked again; ``None`` where they are not equal.
    #[getter]
    fn certificate(&self) -> Option<String> {
        self.both.shown().ok().map(ToString::to_string)
    }

    /// The base-2 logarithm of the chance that different graphs pass; ``None`` where they did not.
    #[getter]
    fn false_accept_log2(&self) -> Option<f64> {
        self.both.shown().ok().map(|certificate| certificate.false_accept_log2())
    }

    fn __bool__(&self) -> bool {
        self.equal()
    }

    fn __repr__(&self) -> String {
        format!("<yirage.Equivalence {}: {}>", self.equal(), self.reason())
    }
}

/// Whether two graphs compute the same, whichever is named first: tests over two finite fields and in floats, and error
/// bounds. They do where one may stand for the other; ``b_for_a`` and ``a_for_b`` of the result say which may, as one may
/// round more or take an input that it does not read.
///
/// Raises:
///     GraphError: a graph without outputs.
#[pyfunction]
pub(super) fn equivalent(py: Python<'_>, a: &Bound<'_, KNGraph>, b: &Bound<'_, KNGraph>) -> PyOutcome<Equivalence> {
    let (a, b) = (a.get().graph()?, b.get().graph()?);
    Ok(Equivalence { both: py.detach(|| BothWays::of(&a, &b, &EqualityOptions::default())) })
}
