//! One answer while it is computed, and what Python sees of it.

use super::params::PySamplingParams;
use crate::failure::{Class, PyFailure, PyOutcome};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use yirage_engine::sampling::PositionLogprobs;
use yirage_engine::scheduler::FinishReason;
use yirage_session::{AnswerEventStream, FinishedAnswer, SessionEvent, TextProcessor};

/// A choice of a request.
pub(super) struct RunningChoice {
    answer: AnswerEventStream,
    params: PySamplingParams,
    tokens: Vec<u32>,
    text: String,
    logprobs: Vec<PositionLogprobs>,
    pub(super) prompt_logprobs: Vec<PositionLogprobs>,
    pub(super) end: Option<FinishedAnswer>,
}

impl RunningChoice {
    pub(super) fn new(answer: AnswerEventStream, params: PySamplingParams) -> RunningChoice {
        let (tokens, text, logprobs, prompt_logprobs) = (Vec::new(), String::new(), Vec::new(), Vec::new());
        RunningChoice { answer, params, tokens, text, logprobs, prompt_logprobs, end: None }
    }

    /// Reads what comes for so long, or to the end.
    ///
    /// # Errors
    /// What ends the answer without one.
    pub(super) fn read(&mut self, wait: Duration) -> PyOutcome<()> {
        let until = Instant::now() + wait;
        while self.end.is_none() {
            match self.answer.next_within(until.saturating_duration_since(Instant::now())) {
                Poll::Pending => return Ok(()),
                Poll::Ready(event) => self.take(event)?,
            }
        }
        Ok(())
    }

    /// Reads until something came that shows, for so long. Whether something did.
    ///
    /// # Errors
    /// As [`RunningChoice::read`].
    pub(super) fn read_some(&mut self, wait: Duration) -> PyOutcome<bool> {
        let until = Instant::now() + wait;
        let before = self.tokens.len();
        while self.end.is_none() {
            // Behind a token only what is there already: its text.
            let new = self.tokens.len() > before;
            let left = if new { Duration::ZERO } else { until.saturating_duration_since(Instant::now()) };
            match self.answer.next_within(left) {
                Poll::Pending => break,
                Poll::Ready(event) => self.take(event)?,
            }
        }
        Ok(self.end.is_some() || self.tokens.len() > before)
    }

    /// Reads what there is; `waker` is told when more comes. Whether anything was there.
    ///
    /// # Errors
    /// As [`RunningChoice::read`].
    pub(super) fn poll(&mut self, waker: &Waker) -> PyOutcome<bool> {
        let mut any = false;
        while self.end.is_none() {
            let polled = {
                use futures_core::Stream;
                Pin::new(&mut self.answer).poll_next(&mut Context::from_waker(waker))
            };
            match polled {
                Poll::Pending => return Ok(any),
                Poll::Ready(event) => {
                    any |= matches!(&event, Some(Ok(SessionEvent::Token { .. } | SessionEvent::Finished(_))));
                    self.take(event)?;
                }
            }
        }
        Ok(any)
    }

    fn take(&mut self, event: Option<Result<SessionEvent, yirage_session::SessionError>>) -> PyOutcome<()> {
        let ended = || PyFailure::Ours(Class::Engine, "the answer ended without a reason; please report this".into());
        match event.ok_or_else(ended)?? {
            SessionEvent::Token { token, logprobs, .. } => {
                self.tokens.push(token);
                self.logprobs.extend(logprobs);
            }
            SessionEvent::Text(piece) => self.text.push_str(&piece),
            SessionEvent::PromptLogprobs { logprobs, .. } => self.prompt_logprobs.push(logprobs),
            SessionEvent::Finished(FinishedAnswer { reason: FinishReason::Error(why), .. }) => {
                return Err(PyFailure::Ours(Class::Engine, format!("a step failed: {why}")));
            }
            SessionEvent::Finished(end) => self.end = Some(end),
            SessionEvent::Logits { .. } | SessionEvent::Hidden { .. } | SessionEvent::RopeScaled { .. } => {}
        }
        Ok(())
    }

    pub(super) fn cancel(&self) {
        self.answer.cancel();
    }

    /// The text as the parameters want it, and the stop text that ended it.
    fn shown(&self, texts: Option<&TextProcessor>) -> (String, Option<String>) {
        let (wanted, skip, include) = self.params.text();
        let Some(texts) = texts.filter(|_| wanted) else { return (String::new(), None) };
        let stopped = matches!(&self.end, Some(FinishedAnswer { reason: FinishReason::StopText, .. }));
        let whole = |skip| texts.tokenizer.decode_continuation(&self.tokens, skip);
        let stop = stopped.then(|| {
            let rest = whole(true);
            let rest = rest.strip_prefix(self.text.as_str()).unwrap_or_default().to_owned();
            self.params.stops().iter().find(|stop| rest.starts_with(stop.as_str())).cloned()
        });
        let stop = stop.flatten();
        let text = match (skip, &stop, include) {
            (false, None, _) => whole(false),
            (_, Some(stop), true) => format!("{}{stop}", self.text),
            _ => self.text.clone(),
        };
        (text, stop)
    }

    /// A `CompletionOutput`.
    pub(super) fn output<'py>(
        &self,
        py: Python<'py>,
        index: u32,
        texts: Option<&TextProcessor>,
    ) -> PyOutcome<Bound<'py, PyAny>> {
        let (text, stop) = self.shown(texts);
        let fields = PyDict::new(py);
        fields.set_item("index", index)?;
        fields.set_item("text", text)?;
        fields.set_item("token_ids", &self.tokens)?;
        let finish = self.end.as_ref().map(|end| match &end.reason {
            FinishReason::StopId(_) | FinishReason::StopText => "stop",
            FinishReason::Length => "length",
            FinishReason::Cancelled | FinishReason::Deadline => "abort",
            FinishReason::NothingAllowed => "nothing_allowed",
            FinishReason::Error(_) => "error",
        });
        fields.set_item("finish_reason", finish)?;
        match (&self.end, stop) {
            (_, Some(stop)) => fields.set_item("stop_reason", stop)?,
            (Some(FinishedAnswer { reason: FinishReason::StopId(id), .. }), None)
                if self.params.stop_ids().contains(id) =>
            {
                fields.set_item("stop_reason", id)?;
            }
            _ => fields.set_item("stop_reason", py.None())?,
        }
        if self.logprobs.len() == self.tokens.len() && !self.tokens.is_empty() {
            let sum: f64 = self.logprobs.iter().map(|of| f64::from(of.chosen.logprob)).sum();
            fields.set_item("cumulative_logprob", sum)?;
            fields.set_item("logprobs", logprobs(py, &self.logprobs, texts)?)?;
        } else {
            fields.set_item("cumulative_logprob", py.None())?;
            fields.set_item("logprobs", py.None())?;
        }
        Ok(py.import("yirage.outputs")?.getattr("CompletionOutput")?.call((), Some(&fields))?)
    }
}

/// A list of `{token: Logprob}`, one a position.
pub(super) fn logprobs<'py>(
    py: Python<'py>,
    positions: &[PositionLogprobs],
    texts: Option<&TextProcessor>,
) -> PyOutcome<Bound<'py, PyList>> {
    let class = py.import("yirage.outputs")?.getattr("Logprob")?;
    let list = PyList::empty(py);
    for of in positions {
        let row = PyDict::new(py);
        let decoded = |token: u32| texts.map(|texts| texts.tokenizer.decode_continuation(&[token], false));
        let chosen = of.top.iter().position(|likely| likely.token == of.chosen.token);
        if chosen.is_none() {
            let (token, logprob) = (of.chosen.token, of.chosen.logprob);
            row.set_item(token, class.call1((logprob, py.None(), decoded(token)))?)?;
        }
        for (rank, likely) in of.top.iter().enumerate() {
            row.set_item(likely.token, class.call1((likely.logprob, rank + 1, decoded(likely.token)))?)?;
        }
        list.append(row)?;
    }
    Ok(list)
}
