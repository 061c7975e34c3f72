//! What a call did.

use pyo3::prelude::*;

/// A request that ended.
#[pyclass(name = "EndedRequest", frozen, get_all, module = "yirage")]
pub(crate) struct PyEndedRequest {
    /// Its row of the metadata.
    request: usize,
    /// ``'eos'`` or ``'length'``.
    reason: &'static str,
    /// Tokens that were generated for it.
    new_tokens: usize,
    /// Guesses of it that were verified.
    drafted: usize,
    /// Of those, the ones that were right.
    accepted: usize,
}

#[pymethods]
impl PyEndedRequest {
    fn __repr__(&self) -> String {
        let PyEndedRequest { request, reason, new_tokens, drafted, accepted } = self;
        format!(
            "EndedRequest(request={request}, reason={reason:?}, new_tokens={new_tokens}, drafted={drafted}, \
             accepted={accepted})"
        )
    }
}

/// What a call of a persistent kernel did.
#[pyclass(name = "CallReport", frozen, get_all, module = "yirage")]
pub(crate) struct PyCallReport {
    /// Whether every request has ended.
    finished: bool,
    /// Steps that ran.
    steps: u64,
    /// Tokens that they computed: prompts, new ones and guesses.
    tokens_run: u64,
    /// Tokens that came out.
    new_tokens: u64,
    /// Guesses that were verified.
    drafted: u64,
    /// Of those, the ones that were right.
    accepted: u64,
    /// Requests that ended, in order.
    ended: Vec<Py<PyEndedRequest>>,
}

#[pymethods]
impl PyCallReport {
    fn __repr__(&self) -> String {
        let PyCallReport { finished, steps, tokens_run, new_tokens, drafted, accepted, ended } = self;
        let (finished, ended) = (if *finished { "True" } else { "False" }, ended.len());
        format!(
            "CallReport(finished={finished}, steps={steps}, tokens_run={tokens_run}, new_tokens={new_tokens}, \
             drafted={drafted}, accepted={accepted}, {ended} ended)"
        )
    }
}

impl PyCallReport {
    pub(super) fn of(py: Python<'_>, report: yirage_persistent::CallReport) -> PyResult<PyCallReport> {
        let yirage_persistent::CallReport { finished, steps, tokens_run, new_tokens, drafted, accepted, ended } =
            report;
        let ended = ended.into_iter().map(|of| {
            let yirage_persistent::EndedRequest { row, reason, new_tokens, drafted, accepted } = of;
            Py::new(py, PyEndedRequest { request: row, reason, new_tokens, drafted, accepted })
        });
        let ended = ended.collect::<PyResult<_>>()?;
        Ok(PyCallReport { finished, steps, tokens_run, new_tokens, drafted, accepted, ended })
    }
}
