//! What the scheduler tells of sequences: new tokens, ends, why they ended and what they took.

use super::seq_id::SeqId;

/// Why a sequence ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// It sampled this stop id.
    StopId(u32),
    /// The caller found the end in the text (a stop string).
    StopText,
    /// It reached its number of new tokens or the end of the context.
    Length,
    /// The caller cancelled it.
    Cancelled,
    /// The caller's clock says that its time is over.
    Deadline,
    /// What restricts its tokens allows none at its next position.
    NothingAllowed,
    /// Its step failed.
    Error(String),
}

/// Token counts of a finished sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SequenceUsage {
    /// Tokens of the prompt.
    pub prompt_tokens: usize,
    /// Prompt tokens that the cache had when the sequence was first admitted.
    pub cached_tokens: usize,
    /// Tokens sampled, a stop id included.
    pub new_tokens: usize,
    /// Times the sequence lost its blocks and was recomputed.
    pub preemptions: u32,
    /// Tokens guessed and verified.
    pub drafted: usize,
    /// Of those, the ones that became tokens of the sequence: steps it was spared.
    pub accepted: usize,
    /// Steps in which guesses of it were verified.
    pub verifications: usize,
    /// Tokens that the host chose, by a chain of samplers; those of guesses that were not taken on count too.
    pub host_sampled: usize,
}

/// What a commit or a cancellation makes known of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeqUpdate {
    /// A sequence sampled its next token.
    Token {
        /// The sequence.
        seq: SeqId,
        /// The token's id.
        token: u32,
        /// Its position in the sequence, counted from the prompt's beginning.
        position: usize,
    },
    /// A sequence ended; its number means nothing from here on.
    Finished {
        /// The sequence.
        seq: SeqId,
        /// Why.
        reason: FinishReason,
        /// Its counts.
        usage: SequenceUsage,
    },
}

/// What [`super::Scheduler::finish`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishOutcome {
    /// The sequence is gone; the update is its last.
    Now(SeqUpdate),
    /// The sequence is in the step in flight; the commit of that step reports its end and drops its token.
    AtCommit,
    /// No such sequence (it may have ended before).
    Unknown,
}
