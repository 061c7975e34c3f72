//! One step's work and its results, as plain data.

use super::phase::Phase;
use super::seq_id::SeqId;
use super::update::FinishReason;

/// What one step runs. Decodes stand before prefill chunks, each by rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Number of the step, from 1.
    pub step: u64,
    /// The sequences' parts; empty when there is nothing to run (then nothing is to be committed).
    pub entries: Vec<BatchEntry>,
}

impl Batch {
    /// Tokens over all entries.
    pub fn tokens(&self) -> usize {
        self.entries.iter().map(|entry| entry.tokens.len()).sum()
    }

    /// Logit rows over all entries.
    pub fn rows(&self) -> usize {
        self.entries.iter().map(|entry| entry.rows.len()).sum()
    }
}

/// One sequence's part of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchEntry {
    /// The sequence.
    pub seq: SeqId,
    /// [`Phase::Prefill`] or [`Phase::Decode`].
    pub phase: Phase,
    /// Token ids to run, at least one; the last [`BatchEntry::drafts`] of them are guesses.
    pub tokens: Vec<u32>,
    /// Guessed tokens at the end of `tokens`, which this step verifies.
    pub drafts: u32,
    /// Position of the first of them. All positions before it are in the cache.
    pub start: u32,
    /// Per cache group, per token: where its keys and values go, as `block * BLOCK + offset`.
    pub slots: Vec<Vec<u32>>,
    /// Per cache group: the block of positions `i * BLOCK ..` at index i, or -1 where no query of this step or later
    /// sees any of them. Covers this step's tokens.
    pub tables: Vec<Vec<i32>>,
    /// Indices into `tokens` of the positions whose logits are wanted, ascending.
    pub rows: Vec<u32>,
    /// Whether the next token is to be sampled from the last row; with drafts, one token from each of the last
    /// `1 + drafts` rows, as if the drafts before it were the sequence's own tokens.
    pub sample: bool,
}

impl BatchEntry {
    /// Tokens that are certain: all but the drafts.
    pub fn certain(&self) -> &[u32] {
        &self.tokens[..self.tokens.len() - self.drafts as usize]
    }

    /// The guessed tokens.
    pub fn drafted(&self) -> &[u32] {
        &self.tokens[self.tokens.len() - self.drafts as usize..]
    }
}

/// What became of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryOutcome {
    /// The entry ran and samples nothing ([`BatchEntry::sample`] is false).
    Ran,
    /// The entry ran and this token was sampled.
    Token(u32),
    /// The entry ran and its drafts were verified: the sampled tokens, in order, up to the first that differs from its
    /// draft. At least one and at most `1 + drafts`; all but the last equal their drafts.
    Run(Vec<u32>),
    /// The entry's sequence cannot go on, for this reason (its logits were not a number, say).
    Failed(FinishReason),
}

/// The result of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepResult {
    /// The entry's sequence.
    pub seq: SeqId,
    /// What became of it.
    pub outcome: EntryOutcome,
}
