//! Errors of sampling.

use crate::limits::{MAX_LOGIT_BIAS, MAX_LOGPROBS};
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
    #[error("logprobs is {value}; at most {MAX_LOGPROBS} are supported")]
    TooManyLogprobs {
        /// Number given.
        value: u32,
    },
    /// Too many logit biases.
    #[error("logit_bias has {count} entries; at most {MAX_LOGIT_BIAS} are supported")]
    TooManyBiases {
        /// Entries given.
        count: usize,
    },
    /// A bias for a token the model does not have.
    #[error("logit_bias names token {token}, but the vocabulary has {vocabulary} tokens (0 to {})", .vocabulary - 1)]
    UnknownToken {
        /// Token id given.
        token: u32,
        /// Tokens in the vocabulary, at least 1.
        vocabulary: usize,
    },
    /// One token twice.
    #[error("logit_bias names token {token} twice")]
    DuplicateToken {
        /// Token id given.
        token: u32,
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
    #[error("none of {vocabulary} tokens can be sampled: all are masked or have the logit -infinity")]
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
