//! From tokens to text that may be shown.

use crate::error::SessionError;
use crate::job::Job;
use crate::texts::TextProcessor;
use std::sync::Arc;
use yirage_engine::text::{EmittedText, StopHit, StopMatcher};
use yirage_model::tokenizer::Detokenizer;

/// An answer's text as it grows.
pub(crate) struct AnswerDetokenizer<'t> {
    texts: &'t TextProcessor,
    detokenizer: Detokenizer<'t>,
    matcher: StopMatcher,
    marks: Arc<[u32]>,
    /// The stop string that is complete, by its place among the job's.
    stopped: Option<usize>,
}

impl<'t> AnswerDetokenizer<'t> {
    /// What follows a job's text towards its stops; of a model with texts or without.
    ///
    /// # Errors
    /// [`SessionError::Stop`], [`SessionError::NoText`].
    pub(crate) fn matcher(job: &Job, texts: bool) -> Result<StopMatcher, SessionError> {
        if !texts && !job.stops.is_empty() {
            return Err(SessionError::NoText { count: job.stops.len() });
        }
        Ok(StopMatcher::new(&job.stops, &job.request.stop_ids)?)
    }

    pub(super) fn new(texts: &'t TextProcessor, matcher: StopMatcher, marks: Arc<[u32]>) -> AnswerDetokenizer<'t> {
        // What is skipped here are control tokens; text that merely looks like them stays.
        AnswerDetokenizer { texts, detokenizer: texts.tokenizer.continuation(true), matcher, marks, stopped: None }
    }

    /// The text that a token makes certain.
    pub(super) fn push(&mut self, token: u32) -> String {
        if self.marks.contains(&token) {
            return self.mark(token, self.texts.tokenizer.piece(token).unwrap_or_default());
        }
        // What ends the text is no text, and all that came before it is.
        if self.matcher.ends_at(token) {
            return self.mark(token, "");
        }
        let piece = self.detokenizer.push(token);
        let emitted = self.matcher.push(token, &piece);
        self.hit(emitted)
    }

    /// A mark stands behind all that came before it, whatever of that was held back.
    fn mark(&mut self, token: u32, mark: &str) -> String {
        let rest = self.texts.tokenizer.continuation(true);
        let before = std::mem::replace(&mut self.detokenizer, rest).finish();
        let emitted = self.matcher.push_mark(token, &before, mark);
        self.hit(emitted)
    }

    fn hit(&mut self, emitted: EmittedText) -> String {
        // What ends at an id the engine ends by itself.
        if let Some(StopHit::Text(at)) = emitted.hit {
            self.stopped = Some(at);
        }
        emitted.text
    }

    /// The stop string that is complete, by its place among the job's.
    pub(super) fn stopped(&self) -> Option<usize> {
        self.stopped
    }

    /// The text that was held back.
    pub(super) fn finish(mut self) -> String {
        self.matcher.finish(&self.detokenizer.finish()).text
    }
}
