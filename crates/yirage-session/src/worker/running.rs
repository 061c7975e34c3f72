//! One answer while it is computed.

use super::answer_detokenizer::AnswerDetokenizer;
use crate::answer::AnswerSink;
use crate::error::SessionError;
use crate::event::{self, FinishedAnswer};
use crate::open::OpenJob;
use std::time::Instant;
use yirage_engine::Event;
use yirage_engine::scheduler::{FinishReason, SequenceUsage};

/// An answer's reader, its text so far, and when what came of it.
pub(super) struct ActiveAnswer<'t> {
    sink: AnswerSink,
    texting: Option<AnswerDetokenizer<'t>>,
    _open: OpenJob,
    submitted: Instant,
    deadline: Option<Instant>,
    admitted: Option<Instant>,
    first: Option<Instant>,
    last: Instant,
    /// Why nothing more can be given to the reader.
    broken: Option<SessionError>,
}

impl<'t> ActiveAnswer<'t> {
    pub(super) fn new(
        sink: AnswerSink,
        texting: Option<AnswerDetokenizer<'t>>,
        open: OpenJob,
        submitted: Instant,
        deadline: Option<Instant>,
    ) -> ActiveAnswer<'t> {
        ActiveAnswer {
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
                self.push(event::SessionEvent::Token { token, position, logprobs });
                let text = self.texting.as_mut().map(|text| text.push(token));
                self.push_text(text);
            }
            Event::PromptLogprobs { position, logprobs, .. } => {
                self.push(event::SessionEvent::PromptLogprobs { position, logprobs });
            }
            Event::Logits { position, logits, .. } => self.push(event::SessionEvent::Logits { position, logits }),
            Event::Hidden { position, state, .. } => self.push(event::SessionEvent::Hidden { position, state }),
            Event::RopeScaled { length, original, .. } => {
                self.push(event::SessionEvent::RopeScaled { length, original })
            }
            Event::Finished { .. } => {}
        }
    }

    fn push_text(&mut self, text: Option<String>) {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            self.push(event::SessionEvent::Text(text));
        }
    }

    fn push(&mut self, event: event::SessionEvent) {
        if self.broken.is_none() {
            self.broken = self.sink.push(event).err();
        }
    }

    /// Passes on the end.
    pub(super) fn finish(mut self, reason: FinishReason, usage: SequenceUsage, gain: Option<f64>) {
        let stop = self.texting.as_ref().and_then(AnswerDetokenizer::stopped);
        let rest = self.texting.take().map(AnswerDetokenizer::finish);
        self.push_text(rest);
        let first = self.first.unwrap_or_else(Instant::now);
        let admitted = self.admitted.unwrap_or(first);
        let queue = admitted.saturating_duration_since(self.submitted);
        let prefill = first.saturating_duration_since(admitted);
        let decode = self.last.saturating_duration_since(first);
        self.push(event::SessionEvent::Finished(FinishedAnswer { reason, stop, usage, gain, queue, prefill, decode }));
        if let Some(error) = self.broken.take() {
            self.fail(error);
        }
    }

    /// Ends it without counts.
    pub(super) fn fail(self, error: SessionError) {
        self.sink.fail(error);
    }
}
