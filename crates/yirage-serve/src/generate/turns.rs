//! All answers of a request, as what was said in them.

use super::speaker::{AnswerEnd, AnswerToken, Speaker};
use super::streams::Streams;
use crate::error::ApiError;
use crate::limits::KEEP_ALIVE;
use crate::models::ModelLease;
use crate::reply::AnswerNotices;
use crate::response_parser::ResponsePiece;
use crate::sse::{Gone, SseWriter};
use yirage_engine::sampling::PositionLogprobs;
use yirage_session::SessionEvent;

/// Something of an answer.
#[derive(Debug)]
pub(crate) enum AnswerUpdate {
    /// Text or calls, with the tokens that came until then.
    Pieces { choice: usize, pieces: Vec<ResponsePiece>, tokens: Vec<AnswerToken> },
    /// The log-probability of a token of the prompt, of each but the first.
    Prompt { choice: usize, logprobs: PositionLogprobs },
    /// The end of an answer, with what was left of it.
    Ended { choice: usize, pieces: Vec<ResponsePiece>, tokens: Vec<AnswerToken>, end: Box<AnswerEnd> },
}

/// Tokens of a whole request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Tokens of all prompts, each counted once.
    pub(crate) prompt: usize,
    /// Of those, the ones that were cached.
    pub(crate) cached: usize,
    /// Tokens of all answers.
    pub(crate) new: usize,
    /// Of those, the ones of thoughts.
    pub(crate) reasoning: usize,
}

/// The answers of a request.
pub(crate) struct Turns {
    streams: Streams,
    speakers: Vec<Speaker>,
    /// Answers to each prompt.
    n: usize,
    usage: Usage,
    /// Why calls that have to come are bare JSON, where they are.
    bare: Option<String>,
}

impl Turns {
    /// The answers of `streams`, `n` to each prompt, each spoken by one of `speaker`.
    pub(crate) fn new(streams: Streams, n: u32, mut speaker: impl FnMut() -> Speaker) -> Turns {
        let speakers = (0..streams.count()).map(|_| speaker()).collect();
        Turns { streams, speakers, n: n.max(1) as usize, usage: Usage::default(), bare: None }
    }

    /// The same with why calls that have to come are bare JSON, where they are.
    pub(crate) fn with_calls(self, bare: Option<String>) -> Turns {
        Turns { bare, ..self }
    }

    /// The model that answers.
    pub(crate) fn lease(&self) -> &ModelLease {
        self.streams.lease()
    }

    /// What headers say of the answers.
    pub(crate) fn notices(&self) -> AnswerNotices {
        let held = self.streams.lease();
        let model = held.stands_in.then(|| held.entry.name().to_owned());
        AnswerNotices { model, clipped: self.streams.clipped(), calls: self.bare.clone() }
    }

    /// How many answers there are.
    pub(crate) fn count(&self) -> usize {
        self.speakers.len()
    }

    /// Tokens of the answers that have ended.
    pub(crate) fn usage(&self) -> Usage {
        self.usage
    }

    /// Waits for the first event, as far as a status line may wait.
    ///
    /// # Errors
    /// A refusal.
    pub(crate) async fn first(&mut self) -> Result<(), ApiError> {
        self.streams.first().await
    }

    /// What comes next; none when all have ended.
    ///
    /// # Errors
    /// What an answer ended with, by which all end.
    pub(crate) async fn next(&mut self) -> Result<Option<AnswerUpdate>, ApiError> {
        loop {
            let Some((choice, event)) = self.streams.next().await? else { return Ok(None) };
            if let SessionEvent::PromptLogprobs { logprobs, .. } = event {
                return Ok(Some(AnswerUpdate::Prompt { choice, logprobs }));
            }
            let Some(speaker) = self.speakers.get_mut(choice) else { continue };
            let (pieces, end) = speaker.take(event)?;
            if let Some(end) = end {
                let tokens = speaker.tokens();
                self.count_end(choice, &end);
                return Ok(Some(AnswerUpdate::Ended { choice, pieces, tokens, end: Box::new(end) }));
            }
            if !pieces.is_empty() {
                return Ok(Some(AnswerUpdate::Pieces { choice, pieces, tokens: speaker.tokens() }));
            }
        }
    }

    fn count_end(&mut self, choice: usize, end: &AnswerEnd) {
        let usage = &end.finished.usage;
        if choice.is_multiple_of(self.n) {
            self.usage.prompt += usage.prompt_tokens;
            self.usage.cached += usage.cached_tokens;
        }
        self.usage.new += usage.new_tokens;
        self.usage.reasoning += end.reasoning;
    }

    /// The same for a stream: while nothing comes the connection is kept open, and a reader that is gone ends it.
    ///
    /// # Errors
    /// [`Gone`].
    pub(crate) async fn next_for(
        &mut self,
        writer: &SseWriter,
    ) -> Result<Result<Option<AnswerUpdate>, ApiError>, Gone> {
        writer.keeping_alive(KEEP_ALIVE, self.next()).await
    }
}
