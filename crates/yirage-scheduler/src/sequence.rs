//! One request on its way through the scheduler.

use super::batch::BatchEntry;
use super::new_sequence::{LogitsWanted, NewSequence};
use super::phase::Phase;
use super::rank::Rank;
use super::seq_id::SeqId;
use super::update::{FinishReason, SequenceUsage};
use crate::kv::SeqCache;
use std::collections::VecDeque;

/// A request with its tokens so far, its blocks and its state.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    pub(super) id: SeqId,
    pub(super) phase: Phase,
    pub(super) rank: Rank,
    pub(super) key: u64,
    /// Prompt and sampled tokens.
    pub(super) tokens: Vec<u32>,
    pub(super) prompt_len: usize,
    /// Length at which the sequence ends.
    pub(super) final_len: usize,
    /// Sorted.
    stop_ids: Vec<u32>,
    logits: LogitsWanted,
    pub(super) salt: Vec<u8>,
    pub(super) cache: SeqCache,
    /// Positions before this one have delivered their logits (only counted when all are wanted).
    rows_done: usize,
    /// Set when the sequence is to end with the step in flight.
    pub(super) ending: Option<FinishReason>,
    /// Prefix hit of the first admission.
    pub(super) cached_tokens: Option<usize>,
    pub(super) preemptions: u32,
    /// Guesses for the next step.
    pub(super) drafts: Vec<u32>,
    /// Verified tokens that have not been delivered yet. Their predecessors' keys and values are in the cache.
    pub(super) ready: VecDeque<u32>,
    pub(super) drafted: usize,
    pub(super) accepted: usize,
    pub(super) verifications: usize,
}

impl Sequence {
    pub(super) fn new(id: SeqId, new: NewSequence, final_len: usize, cache: SeqCache) -> Self {
        let mut stop_ids = new.stop_ids;
        stop_ids.sort_unstable();
        Sequence {
            id,
            phase: Phase::Waiting,
            rank: Rank { priority: new.priority, turn: None },
            key: new.key,
            prompt_len: new.prompt.len(),
            tokens: new.prompt,
            final_len,
            stop_ids,
            logits: new.logits,
            salt: new.cache_salt,
            cache,
            rows_done: 0,
            ending: None,
            cached_tokens: None,
            preemptions: 0,
            drafts: Vec::new(),
            ready: VecDeque::new(),
            drafted: 0,
            accepted: 0,
            verifications: 0,
        }
    }

    /// Moves along an arrow of the state diagram.
    pub(super) fn enter(&mut self, next: Phase) {
        debug_assert!(self.phase.may_become(next), "sequence {}: {:?} -> {next:?}", self.id, self.phase);
        self.phase = next;
    }

    /// Tokens whose keys and values are not in the cache.
    pub(super) fn uncomputed(&self) -> usize {
        self.tokens.len().saturating_sub(self.cache.len())
    }

    /// Whether each position's logits are wanted, so that a step has as many rows of it as tokens.
    pub(super) fn wants_all_logits(&self) -> bool {
        self.logits == LogitsWanted::All
    }

    /// The longest prefix hit this sequence can use: logits that are still wanted must be computed.
    pub(super) fn max_hit(&self) -> usize {
        match self.logits {
            LogitsWanted::Last => usize::MAX,
            LogitsWanted::All => self.rows_done,
        }
    }

    /// Whether computing up to position `upto` reaches a token to be sampled.
    pub(super) fn samples_at(&self, upto: usize) -> bool {
        upto == self.tokens.len() && self.tokens.len() < self.final_len
    }

    /// Drafts that could become tokens: the last token of all is never fed back.
    pub(super) fn draft_capacity(&self) -> usize {
        if self.phase == Phase::Decode { self.remaining_after(1) } else { 0 }
    }

    /// Tokens that it may still get after `more` of them.
    pub(super) fn remaining_after(&self, more: usize) -> usize {
        (self.final_len - self.tokens.len()).saturating_sub(more)
    }

    /// The batch entry for the next `count` tokens and as many of the drafts as `drafts` says, whose room is reserved.
    pub(super) fn entry(&self, count: usize, drafts: usize, groups: usize) -> BatchEntry {
        let (start, length) = (self.cache.len(), self.cache.block_positions());
        let certain = start + count;
        let sample = self.samples_at(certain);
        let upto = certain + drafts;
        let rows_from = match self.logits {
            LogitsWanted::All => self.rows_done.max(start),
            LogitsWanted::Last if sample => certain - 1,
            LogitsWanted::Last => upto,
        };
        let table = |group: usize| self.cache.step_table(group);
        let slots = |table: &[i32]| {
            let slot = |at: usize| {
                let block =
                    u32::try_from(table[at / length]).expect("the positions of an entry were reserved in every group");
                block * length as u32 + (at % length) as u32
            };
            (start..upto).map(slot).collect()
        };
        let tables: Vec<Vec<i32>> = (0..groups).map(table).collect();
        BatchEntry {
            seq: self.id,
            phase: self.phase,
            tokens: [&self.tokens[start..certain], &self.drafts[..drafts]].concat(),
            drafts: drafts as u32,
            start: start as u32,
            slots: tables.iter().map(|table| slots(table)).collect(),
            tables,
            rows: (rows_from..upto).map(|at| (at - start) as u32).collect(),
            sample,
        }
    }

    /// Records that logits up to position `upto` were delivered.
    pub(super) fn rows_delivered(&mut self, upto: usize) {
        self.rows_done = self.rows_done.max(upto);
    }

    /// Whether the tokens so far end the sequence by themselves, and why. A sequence that wants no new token ends when
    /// its prompt is computed.
    pub(super) fn natural_end(&self) -> Option<FinishReason> {
        let sampled = self.tokens.len() > self.prompt_len;
        if let Some(last) = self.tokens.last()
            && sampled
            && self.stop_ids.binary_search(last).is_ok()
        {
            return Some(FinishReason::StopId(*last));
        }
        let full = self.tokens.len() >= self.final_len;
        (full && (sampled || self.uncomputed() == 0)).then_some(FinishReason::Length)
    }

    pub(super) fn usage(&self) -> SequenceUsage {
        SequenceUsage {
            prompt_tokens: self.prompt_len,
            cached_tokens: self.cached_tokens.unwrap_or(0),
            new_tokens: self.tokens.len() - self.prompt_len,
            preemptions: self.preemptions,
            drafted: self.drafted,
            accepted: self.accepted,
            verifications: self.verifications,
            host_sampled: 0,
        }
    }
}
