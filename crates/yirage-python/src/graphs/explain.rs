//! Why a graph runs as it does.

use crate::backends::{self, Chosen};
use crate::failure::PyOutcome;
use pyo3::prelude::*;
use yirage_compile::{CompileOptions, compile_explained, plan_weights};
use yirage_explain::{ReportInput, StoredSizes, report, text};
use yirage_hal::Ceilings;
use yirage_ir::cost::{SequenceSpan, StepSizes};
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
) -> PyOutcome<String> {
    let device = backends::device(py, chosen, 0)?;
    let mut shown = py.detach(|| {
        let (target, options) = (device.target(), CompileOptions::new(Precision::Exact));
        let weights = plan_weights(graph, &target)?;
        let mut passes = Vec::new();
        let plan = compile_explained(graph, DIMS, &target, &weights, &options, &mut passes)?;
        let stored = StoredSizes::new(&*device, &plan)?;
        let limit_of = |format: Format| device.matmul_limit(plan.precision, format);
        let spans = [SequenceSpan { start: 0, tokens: 1, rows: 1 }];
        let report = report(&ReportInput {
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
        PyOutcome::Ok(text(&report, decisions))
    })?;
    if !notes.is_empty() {
        shown.push_str("\nsearch:\n");
        for note in notes {
            shown.push_str(&format!("  {note}\n"));
        }
    }
    Ok(shown)
}
