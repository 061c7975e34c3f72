//! One answer: from events to pieces, tokens and an end.

use crate::error::ApiError;
use crate::response_parser::{CallPart, DeclaredTools, OutputFormat, ResponseParser, ResponsePiece};
use yirage_engine::sampling::PositionLogprobs;
use yirage_engine::scheduler::FinishReason;
use yirage_session::{FinishedAnswer, SessionEvent};

/// A token that came, for those who asked for tokens.
#[derive(Clone, Debug)]
pub(crate) struct AnswerToken {
    pub(crate) id: u32,
    pub(crate) logprobs: Option<PositionLogprobs>,
    /// Whether it is one of a thought.
    pub(crate) thought: bool,
}

/// Why an answer ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    /// By itself, or at a stop.
    Stop,
    /// At its limit.
    Length,
    /// With calls of tools.
    Calls,
}

/// The stop that a client asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StopCause {
    /// A string.
    Text(String),
    /// A token.
    Token(u32),
}

/// An answer's end.
#[derive(Clone, Debug)]
pub(crate) struct AnswerEnd {
    pub(crate) ending: Ending,
    pub(crate) stop: Option<StopCause>,
    pub(crate) finished: FinishedAnswer,
    /// Tokens of thoughts.
    pub(crate) reasoning: usize,
}

/// An answer on its way.
pub(crate) struct Speaker {
    parser: Option<ResponseParser>,
    stops: Vec<String>,
    stop_ids: Vec<u32>,
    /// Whether anybody wants the tokens.
    keeps: bool,
    /// Tokens that were not given on yet.
    waiting: Vec<AnswerToken>,
    reasoning: usize,
    /// Calls that have begun.
    calls: usize,
    parallel: bool,
}

impl Speaker {
    /// An answer whose text is one piece after another of what was said.
    pub(crate) fn plain(stops: &[String], stop_ids: &[u32], keeps: bool) -> Speaker {
        Speaker {
            parser: None,
            stops: stops.to_vec(),
            stop_ids: stop_ids.to_vec(),
            keeps,
            waiting: Vec::new(),
            reasoning: 0,
            calls: 0,
            parallel: true,
        }
    }

    /// The same for a conversation: thoughts and calls are cut out, as the family marks them.
    /// Without `parallel` only the first call counts.
    pub(crate) fn of_family(
        self,
        family: &OutputFormat,
        within_thought: bool,
        declared: DeclaredTools,
        parallel: bool,
    ) -> Speaker {
        Speaker { parser: Some(ResponseParser::new(family, within_thought, declared)), parallel, ..self }
    }

    /// Takes an event: what was said, and the end where it is one.
    ///
    /// # Errors
    /// An end that is no answer.
    pub(crate) fn take(&mut self, event: SessionEvent) -> Result<(Vec<ResponsePiece>, Option<AnswerEnd>), ApiError> {
        match event {
            SessionEvent::Token { token, logprobs, .. } => {
                let thought = self.parser.as_ref().is_some_and(ResponseParser::is_thinking);
                if self.keeps {
                    self.waiting.push(AnswerToken { id: token, logprobs, thought });
                }
                self.reasoning += usize::from(thought);
                Ok((Vec::new(), None))
            }
            SessionEvent::Text(text) => Ok((self.said(&text), None)),
            SessionEvent::Finished(finished) => {
                let pieces = self.parser.take().map(ResponseParser::finish).unwrap_or_default();
                let pieces = self.counted(pieces);
                let end = self.end(finished)?;
                Ok((pieces, Some(end)))
            }
            _ => Ok((Vec::new(), None)),
        }
    }

    fn said(&mut self, text: &str) -> Vec<ResponsePiece> {
        let pieces = match self.parser.as_mut() {
            Some(parser) => parser.push(text),
            None => vec![ResponsePiece::Content(text.to_owned())],
        };
        self.counted(pieces)
    }

    /// Counts calls, and leaves those out that are too many.
    fn counted(&mut self, mut pieces: Vec<ResponsePiece>) -> Vec<ResponsePiece> {
        pieces.retain(|piece| {
            self.calls += usize::from(matches!(piece, ResponsePiece::Call(CallPart::Begin(_))));
            !matches!(piece, ResponsePiece::Call(_)) || self.parallel || self.calls <= 1
        });
        pieces
    }

    fn end(&mut self, finished: FinishedAnswer) -> Result<AnswerEnd, ApiError> {
        let (ending, stop) = match &finished.reason {
            FinishReason::StopId(id) => {
                // The token that ended it says nothing.
                if self.waiting.last().is_some_and(|last| last.id == *id) {
                    self.waiting.pop();
                }
                (Ending::Stop, self.stop_ids.contains(id).then_some(StopCause::Token(*id)))
            }
            FinishReason::StopText => {
                let stop = finished.stop.and_then(|at| self.stops.get(at)).cloned();
                (Ending::Stop, stop.map(StopCause::Text))
            }
            FinishReason::NothingAllowed => {
                let what = "the form that was asked for leaves no further token: nothing fits it, or it is too large";
                return Err(ApiError::invalid(what));
            }
            FinishReason::Length => (Ending::Length, None),
            FinishReason::Deadline => {
                let what = "the request took longer than this server allows";
                let code = Some("timeout");
                return Err(ApiError { code, ..ApiError::unavailable(what, None) });
            }
            FinishReason::Cancelled => return Err(ApiError::unavailable("the request was cancelled", None)),
            FinishReason::Error(why) => return Err(ApiError::ours(why.clone())),
        };
        let ending = if self.calls > 0 && ending == Ending::Stop { Ending::Calls } else { ending };
        Ok(AnswerEnd { ending, stop, finished, reasoning: self.reasoning })
    }

    /// The tokens that came since the last call.
    pub(crate) fn tokens(&mut self) -> Vec<AnswerToken> {
        std::mem::take(&mut self.waiting)
    }
}
