//! One request whose answer is read while it is computed.

use super::answer::{RunningChoice, logprobs};
use super::load::LoadedLlm;
use super::prompt::TokenizedPrompt;
use crate::failure::{Class, PyFailure, PyOutcome};
use crate::process;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

/// How often Ctrl-C is looked for.
pub(super) const LOOK_UP: Duration = Duration::from_millis(50);

/// A request under way: its ``RequestOutput`` after each token.
#[pyclass(name = "Stream", frozen, module = "yirage")]
pub(crate) struct RequestStream {
    model: Arc<LoadedLlm>,
    id: String,
    prompt: TokenizedPrompt,
    running: Mutex<Option<RunningChoice>>,
}

/// Tells Python that there is more to read.
struct StreamWaker(Py<PyAny>);

impl Wake for StreamWaker {
    fn wake(self: Arc<Self>) {
        Python::try_attach(|py| {
            // A loop that is closed by now wants no more.
            let _ = self.0.bind(py).call0();
        });
    }
}

impl RequestStream {
    pub(super) fn new(
        model: Arc<LoadedLlm>,
        id: String,
        prompt: TokenizedPrompt,
        running: RunningChoice,
    ) -> RequestStream {
        RequestStream { model, id, prompt, running: Mutex::new(Some(running)) }
    }

    fn running(&self) -> MutexGuard<'_, Option<RunningChoice>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the answer out where it has not ended, so that nobody waits for a lock while it is read.
    fn still(&self) -> PyOutcome<Option<RunningChoice>> {
        process::check()?;
        let mut held = self.running();
        match held.as_ref() {
            Some(running) if running.end.is_some() => Ok(None),
            Some(_) => Ok(held.take()),
            None => {
                let text = format!("{}: it is being read by another thread; a stream has one reader", self.id);
                Err(PyFailure::Ours(Class::Request, text))
            }
        }
    }

    fn back(&self, running: RunningChoice) {
        *self.running() = Some(running);
    }
}

#[pymethods]
impl RequestStream {
    /// Waits for more of the answer; ``None`` at its end.
    fn next<'py>(&self, py: Python<'py>) -> PyOutcome<Option<Bound<'py, PyAny>>> {
        let Some(mut running) = self.still()? else { return Ok(None) };
        loop {
            let read = py.detach(|| running.read_some(LOOK_UP));
            if let Err(error) = py.check_signals() {
                running.cancel();
                self.back(running);
                return Err(PyFailure::Raised(error));
            }
            match read {
                Ok(false) => {}
                Ok(true) => {
                    let output = self.output(py, &running);
                    self.back(running);
                    return output.map(Some);
                }
                Err(failure) => {
                    self.back(running);
                    return Err(failure);
                }
            }
        }
    }

    /// What there is, or ``None``: ``wake`` is called, on any thread, once there is more. ``(ended, output)``.
    fn poll<'py>(&self, py: Python<'py>, wake: Py<PyAny>) -> PyOutcome<(bool, Option<Bound<'py, PyAny>>)> {
        let Some(mut running) = self.still()? else { return Ok((true, None)) };
        let waker = Waker::from(Arc::new(StreamWaker(wake)));
        let polled = py.detach(|| running.poll(&waker));
        let output = match polled {
            Ok(true) => self.output(py, &running).map(Some),
            Ok(false) => Ok(None),
            Err(failure) => Err(failure),
        };
        self.back(running);
        Ok((false, output?))
    }

    /// Ends the answer where it is.
    fn cancel(&self) {
        if let Some(running) = self.running().as_ref() {
            running.cancel();
        }
    }
}

impl RequestStream {
    fn output<'py>(&self, py: Python<'py>, running: &RunningChoice) -> PyOutcome<Bound<'py, PyAny>> {
        request_output(py, &self.model, &self.id, &self.prompt, std::slice::from_ref(running))
    }
}

/// A `RequestOutput`.
pub(super) fn request_output<'py>(
    py: Python<'py>,
    model: &LoadedLlm,
    id: &str,
    prompt: &TokenizedPrompt,
    choices: &[RunningChoice],
) -> PyOutcome<Bound<'py, PyAny>> {
    let texts = match model {
        LoadedLlm::Generates(model) => model.texts(),
        LoadedLlm::Encodes(_) => None,
    };
    let outputs = choices.iter().zip(0..).map(|(running, index)| running.output(py, index, texts));
    let fields = PyDict::new(py);
    fields.set_item("request_id", id)?;
    fields.set_item("prompt", &prompt.text)?;
    fields.set_item("prompt_token_ids", &prompt.ids)?;
    fields.set_item("outputs", outputs.collect::<PyOutcome<Vec<_>>>()?)?;
    fields.set_item("finished", choices.iter().all(|running| running.end.is_some()))?;
    let first = choices.first();
    let rows = first.map(|running| running.prompt_logprobs.as_slice()).filter(|rows| !rows.is_empty());
    match rows {
        Some(rows) => {
            // Of the first token nothing says how likely it is.
            let list = logprobs(py, rows, texts)?;
            list.insert(0, py.None())?;
            fields.set_item("prompt_logprobs", list)?;
        }
        None => fields.set_item("prompt_logprobs", py.None())?,
    }
    if let Some(end) = first.and_then(|running| running.end.as_ref()) {
        fields.set_item("num_cached_tokens", end.usage.cached_tokens)?;
        let metrics = PyDict::new(py);
        metrics.set_item("queue_seconds", end.queue.as_secs_f64())?;
        metrics.set_item("prefill_seconds", end.prefill.as_secs_f64())?;
        metrics.set_item("decode_seconds", end.decode.as_secs_f64())?;
        metrics.set_item("prompt_tokens", end.usage.prompt_tokens)?;
        metrics.set_item("new_tokens", end.usage.new_tokens)?;
        fields.set_item("metrics", metrics)?;
    }
    Ok(py.import("yirage.outputs")?.getattr("RequestOutput")?.call((), Some(&fields))?)
}
