//! Errors of the scheduler.

use super::seq_id::SeqId;
use crate::limits::MAX_STOP_IDS;

/// A configuration that no scheduler can follow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// A field is 0 or beyond its hard limit.
    #[error("scheduler option {field} is {value}; between 1 and {most} are supported")]
    OutOfRange {
        /// Name of the field.
        field: &'static str,
        /// Value given.
        value: u32,
        /// Largest value allowed.
        most: u32,
    },
    /// Some running sequence would get no token in a step.
    #[error(
        "scheduler option {field} is {value}, below max_seqs {max_seqs}; raise {field} to at least {max_seqs} or \
         lower max_seqs"
    )]
    BelowSeqs {
        /// Name of the field.
        field: &'static str,
        /// Its value.
        value: u32,
        /// Sequences given.
        max_seqs: u32,
    },
}

/// Why a request was not accepted. Nothing of it is kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// There is nothing to compute.
    #[error("the prompt has no tokens; send at least one (most models expect their BOS token)")]
    EmptyPrompt,
    /// The sequence would outgrow the context.
    #[error(
        "the prompt has {prompt} tokens and {max_new} new tokens are asked for: {total} exceed the context of \
         {max_context} by {}; shorten the prompt, ask for fewer tokens or raise the context length",
        .total - .max_context
    )]
    ExceedsContext {
        /// Tokens of the prompt.
        prompt: usize,
        /// New tokens asked for (at least 1 when the request names no number).
        max_new: usize,
        /// Their sum.
        total: usize,
        /// The configured context.
        max_context: usize,
    },
    /// The sequence would not fit the cache even alone.
    #[error(
        "the request needs {positions} cached positions and the cache can hold {capacity} for one sequence, {} fewer; \
         shorten the prompt, ask for fewer tokens or give the cache more memory",
        .positions - .capacity
    )]
    NeverFits {
        /// Cached positions the finished request needs.
        positions: usize,
        /// Positions the pools can hold for a single sequence.
        capacity: usize,
    },
    /// Too many requests wait.
    #[error("{waiting} requests are waiting already, the most that may (max_waiting); try again later")]
    QueueFull {
        /// Requests in the queue.
        waiting: usize,
    },
    /// Too many stop ids.
    #[error("the request has {stop_ids} stop token ids; at most {MAX_STOP_IDS} are supported")]
    TooManyStopIds {
        /// Ids given.
        stop_ids: usize,
    },
    /// Salt too long.
    #[error("the request's cache salt has {bytes} bytes; at most {most} are supported")]
    SaltTooLong {
        /// Bytes given.
        bytes: usize,
        /// Bytes it may have.
        most: usize,
    },
}

/// `schedule` was called while a step's results are still missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("step {step} is in flight: commit its results or fail it before scheduling the next step")]
pub struct StepInFlight {
    /// The step without results.
    pub step: u64,
}

/// Results that do not belong to the step in flight. The step stays in flight and nothing changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// There is no step to commit.
    #[error("no step is in flight, so {results} results belong to nothing")]
    NothingInFlight {
        /// Results given.
        results: usize,
    },
    /// Not one result per entry.
    #[error("step {step} has {entries} entries but {results} results were given")]
    Count {
        /// The step in flight.
        step: u64,
        /// Entries of its batch.
        entries: usize,
        /// Results given.
        results: usize,
    },
    /// A result stands at another entry's place.
    #[error("result {at} of step {step} is for sequence {got}, the batch has sequence {expected} there")]
    Order {
        /// The step in flight.
        step: u64,
        /// Index of the result.
        at: usize,
        /// Sequence the batch has there.
        expected: SeqId,
        /// Sequence the result names.
        got: SeqId,
    },
    /// A token is missing where the entry samples, or present where it does not.
    #[error("result {at} of step {step} (sequence {seq}) {what}")]
    Shape {
        /// The step in flight.
        step: u64,
        /// Index of the result.
        at: usize,
        /// Its sequence.
        seq: SeqId,
        /// "has no token but the entry samples", or the opposite.
        what: &'static str,
    },
}
