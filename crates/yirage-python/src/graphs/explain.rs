//! Why a graph runs as it does, and whether two graphs compute the same.

use crate::backends::{self, Chosen};
use crate::failure::Outcome;
use pyo3::prelude::*;
use yirage_compile::equal::{self, EqualityOptions};
use yirage_compile::{Options, compile_explained, plan_weights};
use yirage_explain::{StoredSizes, Subject, report, text};
use yirage_hal::Ceilings;
use yirage_ir::cost::{Span, StepSizes};
use yirage_ir::{Dims, Format, Graph};
use yirage_plan::Precision;

/// Kernel graphs have fixed sizes: a step is one of everything.
const DIMS: Dims = Dims { tokens: 1, seqs: 1, blocks: 1, rows: 1 };

/// The report of a graph on a backend.
pub(super) fn explain(
    py: Python<'_>,
    graph: &Graph,
    chosen: &Chosen,
    notes: &[String],
    decisions: bool,
) -> Outcome<String> {
    let device = backends::device(py, chosen, 0)?;
    let mut shown = py.detach(|| {
        let (target, options) = (device.target(), Options::new(Precision::Exact));
        let weights = plan_weights(graph, &target)?;
        let mut passes = Vec::new();
        let plan = compile_explained(graph, DIMS, &target, &weights, &options, &mut passes)?;
        let stored = StoredSizes::new(&*device, &plan)?;
        let limit_of = |format: Format| device.product_limit(plan.precision, format);
        let spans = [Span { start: 0, tokens: 1, rows: 1 }];
        let report = report(&Subject {
            plan: &plan,
            passes: &passes,
            step: StepSizes { dims: DIMS, spans: &spans },
            sizes: &stored,
            ceilings: &Ceilings::default(),
            limit_of: &limit_of,
            variant: None,
            chosen: None,
            measured: None,
        });
        Outcome::Ok(text(&report, decisions))
    })?;
    if !notes.is_empty() {
        shown.push_str("\nsearch:\n");
        for note in notes {
            shown.push_str(&format!("  {note}\n"));
        }
    }
    Ok(shown)
}

/// What ``equivalent`` found: true where the graphs compute the same, with what was shown or what speaks against it.
#[pyclass(frozen, module = "yirage")]
pub(crate) struct Equivalence {
    /// Whether the second graph may stand for the first.
    #[pyo3(get)]
    equal: bool,
    /// What was shown, or why it may not.
    #[pyo3(get)]
    reason: String,
    /// Everything that was tested, as text that can be checked again; ``None`` where they are not equal.
    #[pyo3(get)]
    certificate: Option<String>,
    /// The base-2 logarithm of the chance that different graphs pass; ``None`` where they did not.
    #[pyo3(get)]
    false_accept_log2: Option<f64>,
}

#[pymethods]
impl Equivalence {
    fn __bool__(&self) -> bool {
        self.equal
    }

    fn __repr__(&self) -> String {
        format!("<yirage.Equivalence {}: {}>", self.equal, self.reason)
    }
}

/// Whether graph `b` may stand for graph `a`.
pub(super) fn compared(py: Python<'_>, a: &Graph, b: &Graph) -> Equivalence {
    match py.detach(|| equal::equivalent(a, b, &EqualityOptions::default())) {
        Ok(certificate) => Equivalence {
            equal: true,
            reason: "every test over finite fields and in floats passed".into(),
            false_accept_log2: Some(certificate.false_accept_log2()),
            certificate: Some(certificate.to_string()),
        },
        Err(why) => Equivalence { equal: false, reason: why.to_string(), certificate: None, false_accept_log2: None },
    }
}
