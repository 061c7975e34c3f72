//! What a caller is told.

use crate::sampling::PositionLogprobs;
use crate::scheduler::{FinishReason, SeqId, SequenceUsage};

/// What a step made known.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Logits of a position, for requests that want them.
    Logits {
        /// The sequence.
        seq: SeqId,
        /// The position whose successor they predict.
        position: usize,
        /// One a token of the vocabulary.
        logits: Vec<f32>,
    },
    /// The hidden state of a position, after the final norm, for requests that want them.
    Hidden {
        /// The sequence.
        seq: SeqId,
        /// The position.
        position: usize,
        /// One a dimension of the model.
        state: Vec<f32>,
    },
    /// The log-probability of a token of the prompt, for requests that want them: of each but the first, in order.
    PromptLogprobs {
        /// The sequence.
        seq: SeqId,
        /// The token's position.
        position: usize,
        /// The token's, as the one chosen, and those of the likeliest at its place.
        logprobs: PositionLogprobs,
    },
    /// A new token.
    Token {
        /// The sequence.
        seq: SeqId,
        /// Its id.
        token: u32,
        /// Its position, counted from the prompt's beginning.
        position: usize,
        /// Log-probabilities, if asked for.
        logprobs: Option<PositionLogprobs>,
    },
    /// The model's rotary embedding has the dynamic scaling, and this sequence will exceed what the model was made for:
    /// its frequencies are those of its whole length.
    RopeScaled {
        /// The sequence.
        seq: SeqId,
        /// Positions it will have when it is whole.
        length: u32,
        /// Positions the model was made for.
        original: u32,
    },
    /// A sequence ended.
    Finished {
        /// The sequence.
        seq: SeqId,
        /// Why.
        reason: FinishReason,
        /// Its counts.
        usage: SequenceUsage,
        /// By how much guessing is estimated to have made its tokens faster than one by one, from measured times; none
        /// where guessing is off or nothing was decoded.
        gain: Option<f64>,
    },
}
