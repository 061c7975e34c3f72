//! Errors of sampling.

use crate::limits::{MAX_BAD_WORD_TOKENS, MAX_BAD_WORDS, MAX_LOGIT_BIAS, MAX_LOGPROBS};
use yirage_compile::CompileError;
use yirage_hal::HalError;
use yirage_ir::BuildError;

/// A sampling parameter out of its range. The message is for the one who sent the request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ParamError {
    /// A number outside of its range (or not a number).
    #[error("{field} is {value}; it must be {allowed}")]
    OutOfRange {
        /// Name of the parameter.
        field: &'static str,
        /// Value given.
        value: f32,
        /// The range, in words.
        allowed: &'static str,
    },
    /// Too many alternatives asked for.
    #[error("{field} is {value}; at most {MAX_LOGPROBS} are supported")]
    TooManyLogprobs {
        /// Name of the parameter.
        field: &'static str,
        /// Number given.
        value: u32,
    },
    /// Too many logit biases.
    #[error("logit_bias has {count} entries; at most {MAX_LOGIT_BIAS} are supported")]
    TooManyBiases {
        /// Entries given.
        count: usize,
    },
    /// A token the model does not have.
    #[error("{field} names token {token}, but the vocabulary has {vocabulary} tokens (0 to {})", .vocabulary - 1)]
    UnknownToken {
        /// Name of the parameter.
        field: &'static str,
        /// Token id given.
        token: u32,
        /// Tokens in the vocabulary, at least 1.
        vocabulary: usize,
    },
    /// One token twice.
    #[error("logit_bias names token {token} twice; name each token once")]
    DuplicateToken {
        /// Token id given.
        token: u32,
    },
    /// More allowed tokens than there are.
    #[error("allowed_tokens has {count} entries, but the vocabulary has {vocabulary} tokens; name each once")]
    TooManyAllowed {
        /// Entries given.
        count: usize,
        /// Tokens in the vocabulary.
        vocabulary: usize,
    },
    /// Too many forbidden sequences.
    #[error("bad_words has {count} entries; at most {MAX_BAD_WORDS} are supported")]
    TooManyBadWords {
        /// Entries given.
        count: usize,
    },
    /// A forbidden sequence of no tokens, or of too many.
    #[error("bad_words has {tokens} tokens at place {at}; 1 to {MAX_BAD_WORD_TOKENS} are supported")]
    BadWordLength {
        /// Its place in the list.
        at: usize,
        /// Tokens it has.
        tokens: usize,
    },
    /// The lists together leave no token.
    #[error(
        "allowed_tokens, bad_words and, before min_new_tokens, stop_ids leave none of {vocabulary} tokens; allow at least \
         one"
    )]
    NothingAllowed {
        /// Tokens in the vocabulary.
        vocabulary: usize,
    },
    /// More tokens are wanted at least than may come at most.
    #[error(
        "min_new_tokens is {min}, above the {most} new tokens that the request can have at most; lower it, or raise `max_new_tokens`"
    )]
    MinAboveMost {
        /// Tokens wanted at least.
        min: u32,
        /// Tokens that can come at most.
        most: u32,
    },
    /// A vocabulary of nothing.
    #[error("the model's vocabulary is empty, so nothing can be sampled")]
    EmptyVocabulary,
}

/// Why a row of logits gives no token. It ends the sequence, not the engine.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// A logit is NaN or +infinity: the model's arithmetic failed.
    #[error(
        "the logit of token {token} is {value} {stage}; the model's output is not usable (a damaged file, or an \
         overflow: try --precision exact)"
    )]
    NotFinite {
        /// First such token.
        token: usize,
        /// Its logit.
        value: f32,
        /// "as the model gave it" or "after bias and penalties".
        stage: &'static str,
    },
    /// The row is empty, or every token is masked or has the logit -infinity.
    #[error(
        "none of {vocabulary} tokens can be sampled: all are masked or have the logit -infinity; allow more tokens, or check the model's weights"
    )]
    NoCandidate {
        /// Tokens in the row.
        vocabulary: usize,
    },
    /// The row is not the one the parameters were checked for.
    #[error("the row has {got} logits but the parameters were checked for a vocabulary of {expected}")]
    Vocabulary {
        /// Vocabulary the parameters were checked for.
        expected: usize,
        /// Logits in the row.
        got: usize,
    },
    /// A row that the host was to choose from is not there: a bug of the engine, with its facts.
    #[error("sampling on the host: {why}")]
    Logits {
        /// What is missing.
        why: String,
    },
    /// Samplers that the device has not.
    #[error("{} are samplers of the host, and a device is asked: give them to an engine, or leave them out", .0.join(", "))]
    OnHost(Vec<&'static str>),
    /// The device failed, which concerns all rows of the step.
    #[error(transparent)]
    Device(#[from] HalError),
    /// The device cannot sample: it has no kernel for it.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The graph does not hold together: a bug of the sampler, with its facts.
    #[error("sampling: {0}")]
    Graph(#[from] BuildError),
}
