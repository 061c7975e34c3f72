//! What a caller is told of an answer.

use std::time::Duration;
use yirage_engine::sampling::PositionLogprobs;
use yirage_engine::scheduler::{FinishReason, SequenceUsage};

/// What became known of an answer. The last event is [`SessionEvent::Finished`] or an error.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionEvent {
    /// A new token.
    Token {
        /// Its id.
        token: u32,
        /// Its position, counted from the prompt's beginning.
        position: usize,
        /// Log-probabilities, if asked for.
        logprobs: Option<PositionLogprobs>,
    },
    /// Text that is certainly part of the answer. It may belong to tokens before the last one, and never ends within a
    /// character.
    Text(String),
    /// The log-probability of a token of the prompt, if asked for: of each but the first, in order.
    PromptLogprobs {
        /// The token's position.
        position: usize,
        /// The token's, as the one chosen, and those of the likeliest at its place.
        logprobs: PositionLogprobs,
    },
    /// Logits of a position, if asked for.
    Logits {
        /// The position whose successor they predict.
        position: usize,
        /// One a token of the vocabulary.
        logits: Vec<f32>,
    },
    /// The hidden state of a position, if asked for.
    Hidden {
        /// The position.
        position: usize,
        /// One a dimension of the model.
        state: Vec<f32>,
    },
    /// The rotary embedding is scaled for this sequence's length: another limit of tokens gives other numbers.
    RopeScaled {
        /// Positions it will have when it is whole.
        length: u32,
        /// Positions the model was made for.
        original: u32,
    },
    /// The end.
    Finished(FinishedAnswer),
}

/// How an answer ended.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedAnswer {
    /// Why.
    pub reason: FinishReason,
    /// The stop string that ended it, by its place among the job's.
    pub stop: Option<usize>,
    /// Its counts.
    pub usage: SequenceUsage,
    /// By how much guessing is estimated to have made it faster; none where nothing was guessed.
    pub gain: Option<f64>,
    /// From the job's submission until the engine first admitted it; to the end where it never did.
    pub queue: Duration,
    /// From then to the first token; to the end where there is none.
    pub prefill: Duration,
    /// From the first token to the last.
    pub decode: Duration,
}

impl SessionEvent {
    /// Bytes that it takes while it waits to be read, but for a constant.
    pub(crate) fn bytes(&self) -> usize {
        let held = match self {
            SessionEvent::Text(text) => text.len(),
            SessionEvent::Logits { logits: values, .. } | SessionEvent::Hidden { state: values, .. } => {
                size_of_val(&values[..])
            }
            SessionEvent::Token { logprobs, .. } => logprobs.as_ref().map_or(0, |of| size_of_val(&of.top[..])),
            SessionEvent::PromptLogprobs { logprobs, .. } => size_of_val(&logprobs.top[..]),
            SessionEvent::RopeScaled { .. } | SessionEvent::Finished(_) => 0,
        };
        held + size_of::<SessionEvent>()
    }
}
