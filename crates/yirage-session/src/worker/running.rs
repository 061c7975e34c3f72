//! One answer while it is computed.

use super::texting::Texting;
use crate::answer::Sink;
use crate::error::SessionError;
use crate::event::{self, Finished};
use crate::open::OpenJob;
use std::time::Instant;
use yirage_engine::Event;
use yirage_engine::scheduler::{FinishReason, Usage};

/// An answer's reader, its text so far, and when what came of it.
pub(super) struct Running<'t> {
    sink: Sink,
    texting: Option<Texting<'t>>,
    _open: OpenJob,
    submitted: Instant,
    deadline: Option<Instant>,
    admitted: Option<Instant>,
    first: Option<Instant>,
    last: Instant,
    /// Why nothing more can be given to the reader.
    broken: Option<SessionError>,
}

impl<'t> Running<'t> {
    pub(super) fn new(
        sink: Sink,
        texting: Option<Texting<'t>>,
        open: OpenJob,
        submitted: Instant,
        deadline: Option<Instant>,
    ) -> Running<'t> {
        Running {
            sink,
            texting,
            _open: open,
            submitted,
            deadline,
            admitted: None,
            first: None,
            last: submitted,
            broken: None,
        }
    }

    /// It waits no more since then.
    pub(super) fn admit(&mut self, at: Instant) {
        self.admitted.get_or_insert(at);
    }

    /// Why it is to end before its time, if it is.
    pub(super) fn wants_end(&self, now: Instant) -> Option<FinishReason> {
        if self.broken.is_some() || self.sink.is_cancelled() {
            return Some(FinishReason::Cancelled);
        }
        if self.texting.as_ref().is_some_and(|texting| texting.stopped().is_some()) {
            return Some(FinishReason::StopText);
        }
        self.deadline.filter(|&deadline| now >= deadline).map(|_| FinishReason::Deadline)
    }

    /// Passes on what the engine says, the text of a token behind it.
    pub(super) fn give(&mut self, event: Event) {
        match event {
            Event::Token { token, position, logprobs, .. } => {
                self.last = Instant::now();
                self.first.get_or_insert(self.last);
                self.push(event::Event::Token { token, position, logprobs });
                let text = self.texting.as_mut().map(|text| text.push(token));
                self.push_text(text);
            }
            Event::PromptLogprobs { position, logprobs, .. } => {
                self.push(event::Event::PromptLogprobs { position, logprobs });
            }
            Event::Logits { position, logits, .. } => self.push(event::Event::Logits { position, logits }),
            Event::Hidden { position, state, .. } => self.push(event::Event::Hidden { position, state }),
            Event::RopeScaled { length, original, .. } => self.push(event::Event::RopeScaled { length, original }),
            Event::Finished { .. } => {}
        }
    }

    fn push_text(&mut self, text: Option<String>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.push(event::Event::Text(text));
        }
    }

    fn push(&mut self, event: event::Event) {
        if self.broken.is_none() {
            self.broken = self.sink.push(event).err();
        }
    }

    /// Passes on the end.
    pub(super) fn finish(mut self, reason: FinishReason, usage: Usage, gain: Option<f64>) {
        let stop = self.texting.as_ref().and_then(Texting::stopped);
        let rest = self.texting.take().map(Texting::finish);
        self.push_text(rest);
        let first = self.first.unwrap_or_else(Instant::now);
        let admitted = self.admitted.unwrap_or(first);
        let queue = admitted.saturating_duration_since(self.submitted);
        let prefill = first.saturating_duration_since(admitted);
        let decode = self.last.saturating_duration_since(first);
        self.push(event::Event::Finished(Finished { reason, stop, usage, gain, queue, prefill, decode }));
        if let Some(error) = self.broken.take() {
            self.fail(error);
        }
    }

    /// Ends it without counts.
    pub(super) fn fail(self, error: SessionError) {
        self.sink.fail(error);
    }
}
