//! One answer: from events to pieces, tokens and an end.

use crate::error::ApiError;
use crate::models::Generator;
use crate::speech::{Family, Piece, Splitter};
use yirage_engine::sampling::Logprobs;
use yirage_engine::scheduler::FinishReason;
use yirage_session::{Event, Finished};

/// A token that came, for those who asked for tokens.
#[derive(Clone, Debug)]
pub(crate) struct SeenToken {
    pub(crate) id: u32,
    pub(crate) logprobs: Option<Logprobs>,
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
pub(crate) struct End {
    pub(crate) ending: Ending,
    pub(crate) stop: Option<StopCause>,
    pub(crate) finished: Finished,
    /// Tokens of thoughts.
    pub(crate) reasoning: usize,
}

/// An answer on its way.
pub(crate) struct Speaker {
    splitter: Option<Splitter>,
    /// Special tokens that are markers: they are no text, so what they say is put in here.
    markers: Vec<(u32, &'static str)>,
    stops: Vec<String>,
    stop_ids: Vec<u32>,
    /// Whether anybody wants the tokens.
    keeps: bool,
    ids: Vec<u32>,
    /// Tokens that were not given on yet.
    waiting: Vec<SeenToken>,
    /// Bytes of text so far.
    bytes: usize,
    reasoning: usize,
    called: bool,
    parallel: bool,
}

impl Speaker {
    /// An answer whose text is one piece after another of what was said.
    pub(crate) fn plain(stops: &[String], stop_ids: &[u32], keeps: bool) -> Speaker {
        Speaker {
            splitter: None,
            markers: Vec::new(),
            stops: stops.to_vec(),
            stop_ids: stop_ids.to_vec(),
            keeps,
            ids: Vec::new(),
            waiting: Vec::new(),
            bytes: 0,
            reasoning: 0,
            called: false,
            parallel: true,
        }
    }

    /// The same for a conversation: thoughts and calls are cut out, as the family marks them.
    /// Without `parallel` only the first call counts.
    pub(crate) fn of_family(
        self,
        generator: &Generator,
        family: Family,
        within_thought: bool,
        parallel: bool,
    ) -> Speaker {
        let tokenizer = generator.model().texts().map(|texts| &texts.tokenizer);
        let mut words: Vec<&'static str> = Vec::new();
        words.extend(family.calls.iter().flat_map(|form| [Some(form.begin()), form.end()]).flatten());
        words.extend(family.thinks.then_some(["<think>", "</think>"]).iter().flatten());
        let special = |word: &'static str| {
            let id = tokenizer?.token_id(word)?;
            tokenizer?.is_special(id).then_some((id, word))
        };
        let splitter = Some(Splitter::new(family.thinks, within_thought, family.calls));
        Speaker { splitter, parallel, markers: words.into_iter().filter_map(special).collect(), ..self }
    }

    /// Takes an event: what was said, and the end where it is one.
    ///
    /// # Errors
    /// An end that is no answer.
    pub(crate) fn take(&mut self, generator: &Generator, event: Event) -> Result<(Vec<Piece>, Option<End>), ApiError> {
        match event {
            Event::Token { token, logprobs, .. } => {
                self.ids.push(token);
                let thought = self.splitter.as_ref().is_some_and(Splitter::is_thinking);
                if self.keeps {
                    self.waiting.push(SeenToken { id: token, logprobs, thought });
                }
                self.reasoning += usize::from(thought);
                let marker = self.markers.iter().find(|(id, _)| *id == token).map(|(_, word)| *word);
                Ok((marker.map(|word| self.said(word)).unwrap_or_default(), None))
            }
            Event::Text(text) => {
                self.bytes += text.len();
                Ok((self.said(&text), None))
            }
            Event::Finished(finished) => {
                let pieces = self.splitter.take().map(Splitter::finish).unwrap_or_default();
                let pieces = self.counted(pieces);
                let end = self.end(generator, finished)?;
                Ok((pieces, Some(end)))
            }
            _ => Ok((Vec::new(), None)),
        }
    }

    fn said(&mut self, text: &str) -> Vec<Piece> {
        let pieces = match self.splitter.as_mut() {
            Some(splitter) => splitter.push(text),
            None => vec![Piece::Content(text.to_owned())],
        };
        self.counted(pieces)
    }

    /// Notes that there are calls, and leaves those out that are too many.
    fn counted(&mut self, mut pieces: Vec<Piece>) -> Vec<Piece> {
        pieces.retain(|piece| match piece {
            Piece::Call(_) => !std::mem::replace(&mut self.called, true) || self.parallel,
            _ => true,
        });
        pieces
    }

    fn end(&mut self, generator: &Generator, finished: Finished) -> Result<End, ApiError> {
        let (ending, stop) = match &finished.reason {
            FinishReason::StopId(id) => {
                // The token that ended it says nothing.
                if self.waiting.last().is_some_and(|last| last.id == *id) {
                    self.waiting.pop();
                }
                (Ending::Stop, self.stop_ids.contains(id).then_some(StopCause::Token(*id)))
            }
            FinishReason::StopText => (Ending::Stop, self.stop_text(generator).map(StopCause::Text)),
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
        let ending = if self.called && ending == Ending::Stop { Ending::Calls } else { ending };
        Ok(End { ending, stop, finished, reasoning: self.reasoning })
    }

    /// Which of the stop strings it was: the one that stands behind the text.
    fn stop_text(&self, generator: &Generator) -> Option<String> {
        let whole = generator.model().texts()?.tokenizer.decode_continuation(&self.ids, true);
        let behind = whole.get(self.bytes..)?;
        self.stops.iter().find(|stop| behind.starts_with(stop.as_str())).cloned()
    }

    /// The tokens that came since the last call.
    pub(crate) fn tokens(&mut self) -> Vec<SeenToken> {
        std::mem::take(&mut self.waiting)
    }
}
