//! From tokens to text that may be shown.

use crate::error::SessionError;
use crate::job::Job;
use crate::texts::Texts;
use yirage_engine::text::{StopHit, StopMatcher};
use yirage_model::tokenizer::Detokenizer;

/// An answer's text as it grows.
pub(crate) struct Texting<'t> {
    detokenizer: Detokenizer<'t>,
    matcher: StopMatcher,
    stopped: bool,
}

impl<'t> Texting<'t> {
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

    pub(super) fn new(texts: &'t Texts, matcher: StopMatcher) -> Texting<'t> {
        // What is skipped here are control tokens; text that merely looks like them stays.
        Texting { detokenizer: texts.tokenizer.continuation(true), matcher, stopped: false }
    }

    /// The text that a token makes certain.
    pub(super) fn push(&mut self, token: u32) -> String {
        let piece = self.detokenizer.push(token);
        let emitted = self.matcher.push(token, &piece);
        // What ends at an id the engine ends by itself.
        self.stopped |= matches!(emitted.hit, Some(StopHit::Text(_)));
        emitted.text
    }

    /// Whether a stop string is complete.
    pub(super) fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// The text that was held back.
    pub(super) fn finish(mut self) -> String {
        self.matcher.finish(&self.detokenizer.finish()).text
    }
}
