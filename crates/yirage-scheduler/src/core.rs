//! The scheduler's state, its commands, and the commit of a step.

use super::batch::{Batch, BatchEntry, EntryOutcome, StepResult};
use super::config::SchedulerConfig;
use super::error::{AdmissionError, CommitError, ConfigError};
use super::new_sequence::NewSequence;
use super::phase::Phase;
use super::queue::SequenceQueue;
use super::rank::Rank;
use super::seq_id::SeqId;
use super::sequence::Sequence;
use super::shares::Shares;
use super::update::{FinishOutcome, FinishReason, SeqUpdate};
use crate::kv::{KvManager, Violation};
use std::num::NonZeroUsize;

/// Exact counters since the scheduler was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SchedulerStats {
    /// Steps scheduled with at least one entry.
    pub steps: u64,
    /// Tokens run over all steps.
    pub tokens_run: u64,
    /// Sequences that lost their blocks to one of higher rank.
    pub preemptions: u64,
    /// Tokens of admitted sequences, each admission counted.
    pub prefix_queried: u64,
    /// Of those, the ones the cache had.
    pub prefix_hit: u64,
    /// Guessed tokens run; they are among `tokens_run`.
    pub drafted: u64,
    /// Of those, the ones that became tokens of their sequences.
    pub accepted: u64,
    /// Of `steps`, the ones planned before the tokens of the step before were known.
    pub ahead: u64,
}

/// An entry of the step in flight.
#[derive(Clone, Debug)]
pub(super) struct InFlight {
    pub(super) seq: SeqId,
    pub(super) rank: Rank,
    /// Positions that are computed for certain after the step.
    pub(super) upto: usize,
    pub(super) drafts: Vec<u32>,
    pub(super) sample: bool,
}

/// Decides step by step what runs. A pure value: the same commands in the same order give the same batches.
///
/// The loop of its owner: [`Scheduler::add`] and [`Scheduler::cancel`] at any moment, [`Scheduler::schedule`], run the
/// batch, [`Scheduler::commit`].
#[derive(Clone, Debug)]
pub struct Scheduler {
    pub(super) config: SchedulerConfig,
    pub(super) kv: KvManager,
    pub(super) waiting: SequenceQueue,
    pub(super) shares: Shares,
    /// By rank.
    pub(super) running: Vec<Sequence>,
    /// The most prefill tokens of a step that also decodes.
    pub(super) prefill_limit: Option<NonZeroUsize>,
    /// Sequences that had a first turn.
    pub(super) turns: u64,
    /// Those among them that nobody was told of yet.
    pub(super) admitted: Vec<SeqId>,
    pub(super) in_flight: Vec<InFlight>,
    /// The step before it, where that has no results yet either.
    pub(super) assumed: Vec<InFlight>,
    pub(super) step: u64,
    pub(super) stats: SchedulerStats,
    next_id: u64,
}

impl Scheduler {
    /// A scheduler without requests over an empty cache.
    ///
    /// # Errors
    /// [`ConfigError`] when the limits contradict each other or the hard limits.
    pub fn new(config: SchedulerConfig, kv: KvManager) -> Result<Self, ConfigError> {
        config.validate()?;
        Ok(Scheduler {
            config,
            kv,
            waiting: SequenceQueue::default(),
            shares: Shares::default(),
            running: Vec::new(),
            prefill_limit: None,
            turns: 0,
            admitted: Vec::new(),
            in_flight: Vec::new(),
            assumed: Vec::new(),
            step: 0,
            stats: SchedulerStats::default(),
            next_id: 0,
        })
    }

    /// Queues a request. Allowed at any moment, also while a step is in flight.
    ///
    /// # Errors
    /// [`AdmissionError`] for a request that could never run, with the numbers, and for a full queue.
    pub fn add(&mut self, new: NewSequence) -> Result<SeqId, AdmissionError> {
        let capacity = self.kv.max_positions(self.config.chunk());
        let final_len = new.final_length(self.config.max_context as usize, capacity)?;
        let waiting = self.waiting.without_turn();
        if waiting >= self.config.max_waiting as usize {
            return Err(AdmissionError::QueueFull { waiting });
        }
        let id = SeqId(self.next_id);
        self.next_id += 1;
        self.shares.enter(new.key);
        self.waiting.put(Sequence::new(id, new, final_len, self.kv.empty()));
        Ok(id)
    }

    /// Ends a sequence because the caller no longer wants it; [`Scheduler::finish`] with
    /// [`FinishReason::Cancelled`].
    pub fn cancel(&mut self, seq: SeqId) -> FinishOutcome {
        self.finish(seq, FinishReason::Cancelled)
    }

    /// Ends a sequence for a reason the scheduler cannot see (a stop string, a lost client). Allowed at any moment:
    /// blocks that the step in flight still writes are given back with its commit.
    pub fn finish(&mut self, seq: SeqId, reason: FinishReason) -> FinishOutcome {
        if let Some(seq) = self.waiting.remove(seq) {
            return FinishOutcome::Now(self.close(seq, reason));
        }
        let Some(at) = self.running_at(seq) else { return FinishOutcome::Unknown };
        if self.in_flight.iter().any(|entry| entry.seq == seq) {
            self.running[at].ending.get_or_insert(reason);
            return FinishOutcome::AtCommit;
        }
        let seq = self.running.remove(at);
        FinishOutcome::Now(self.close(seq, reason))
    }

    /// Where a running sequence stands.
    pub(super) fn running_at(&self, seq: SeqId) -> Option<usize> {
        self.running.iter().position(|other| other.id == seq)
    }

    /// Where a sequence stands that is in flight, if it still runs.
    pub(super) fn in_flight_at(&self, entry: &InFlight) -> Option<usize> {
        self.running.binary_search_by_key(&entry.rank, |seq| seq.rank).ok()
    }

    /// How many prefill tokens the steps from now on may have that also decode: with as many the others who wait for their
    /// next token do not wait for too long. None is no limit.
    pub fn limit_prefill(&mut self, tokens: Option<NonZeroUsize>) {
        self.prefill_limit = tokens;
    }

    /// Notes a planned step as in flight.
    pub(super) fn begin(&mut self, entries: Vec<(Rank, BatchEntry)>) -> Batch {
        let note = |(rank, entry): &(Rank, BatchEntry)| InFlight {
            seq: entry.seq,
            rank: *rank,
            upto: entry.start as usize + entry.certain().len(),
            drafts: entry.drafted().to_vec(),
            sample: entry.sample,
        };
        self.in_flight = entries.iter().map(note).collect();
        self.step += 1;
        let batch = Batch { step: self.step, entries: entries.into_iter().map(|(_, entry)| entry).collect() };
        self.stats.steps += u64::from(!batch.entries.is_empty());
        self.stats.tokens_run += batch.tokens() as u64;
        self.stats.drafted += batch.entries.iter().map(|entry| u64::from(entry.drafts)).sum::<u64>();
        batch
    }

    /// Takes the results of the step in flight, of two the older one's, one per entry in the batch's order, and reports what they mean, in the
    /// same order: the sampled token of a sequence before its end. Of a verified run the first token is reported here,
    /// the others one by one by [`Scheduler::deliver`], so that the caller can end a sequence after any of its tokens.
    ///
    /// # Errors
    /// [`CommitError`] when the results are not those of the step in flight; then nothing has changed.
    pub fn commit(&mut self, results: &[StepResult]) -> Result<Vec<SeqUpdate>, CommitError> {
        if !self.assumed.is_empty() {
            return self.resolve(results);
        }
        self.match_results(&self.in_flight, results)?;
        let mut updates = Vec::new();
        for (entry, result) in std::mem::take(&mut self.in_flight).into_iter().zip(results) {
            let at =
                self.in_flight_at(&entry).expect("a sequence in flight stays among the running ones until its commit");
            self.commit_entry(at, entry, &result.outcome, &mut updates);
        }
        Ok(updates)
    }

    /// Results must be one per entry, in order, with a token exactly where one was to be sampled.
    pub(super) fn match_results(&self, entries: &[InFlight], results: &[StepResult]) -> Result<(), CommitError> {
        let step = self.step;
        if entries.is_empty() {
            return Err(CommitError::NothingInFlight { results: results.len() });
        }
        if entries.len() != results.len() {
            return Err(CommitError::Count { step, entries: entries.len(), results: results.len() });
        }
        for (at, (entry, result)) in entries.iter().zip(results).enumerate() {
            if entry.seq != result.seq {
                return Err(CommitError::Order { step, at, expected: entry.seq, got: result.seq });
            }
            let what = match (&result.outcome, entry.sample) {
                (EntryOutcome::Ran, true) => "has no token but the entry samples",
                (EntryOutcome::Token(_) | EntryOutcome::Run(_), false) => "has a token but the entry does not sample",
                (EntryOutcome::Run(run), true) if !verified(run, &entry.drafts) => {
                    "has a run that its drafts do not allow"
                }
                _ => continue,
            };
            return Err(CommitError::Shape { step, at, seq: entry.seq, what });
        }
        Ok(())
    }

    fn commit_entry(&mut self, at: usize, entry: InFlight, outcome: &EntryOutcome, updates: &mut Vec<SeqUpdate>) {
        let upto = entry.upto;
        let seq = &mut self.running[at];
        seq.drafted += entry.drafts.len();
        seq.verifications += usize::from(!entry.drafts.is_empty());
        let mut end = seq.ending.take();
        if let EntryOutcome::Failed(why) = outcome {
            end.get_or_insert_with(|| why.clone());
        }
        if let Some(reason) = end {
            let seq = self.running.remove(at);
            updates.push(self.close(seq, reason));
            return;
        }
        self.kv.advance(&mut seq.cache, &seq.tokens, upto);
        seq.rows_delivered(upto);
        let (first, rest) = match outcome {
            EntryOutcome::Token(token) => (Some(*token), &[][..]),
            EntryOutcome::Run(run) => (run.first().copied(), &run[1..]),
            EntryOutcome::Ran | EntryOutcome::Failed(_) => (None, &[][..]),
        };
        if let Some(token) = first {
            seq.ready.extend(rest);
            updates.push(SeqUpdate::Token { seq: seq.id, token, position: seq.tokens.len() });
            seq.tokens.push(token);
            if seq.phase == Phase::Prefill {
                seq.enter(Phase::Decode);
            }
        }
        self.settle(at, updates);
    }

    /// Reports the next token of each verified run, by rank; nothing when all have been reported. To be
    /// called until then, between a commit and the next step; a sequence may be ended in between, and then nothing of
    /// the rest of its run remains.
    pub fn deliver(&mut self) -> Vec<SeqUpdate> {
        let mut updates = Vec::new();
        let mut at = 0;
        while let Some(seq) = self.running.get_mut(at) {
            let id = seq.id;
            if let Some(token) = seq.ready.pop_front() {
                // The token before this one was a draft: it has been computed with the step.
                let upto = seq.tokens.len();
                self.kv.advance(&mut seq.cache, &seq.tokens, upto);
                seq.rows_delivered(upto);
                seq.accepted += 1;
                self.stats.accepted += 1;
                updates.push(SeqUpdate::Token { seq: id, token, position: upto });
                seq.tokens.push(token);
                self.settle(at, &mut updates);
            }
            at += usize::from(self.running.get(at).is_some_and(|seq| seq.id == id));
        }
        updates
    }

    /// After new tokens of a sequence: its end, or blocks of drafts that came to nothing are given back.
    fn settle(&mut self, at: usize, updates: &mut Vec<SeqUpdate>) {
        let seq = &mut self.running[at];
        if let Some(reason) = seq.natural_end() {
            let seq = self.running.remove(at);
            updates.push(self.close(seq, reason));
        } else if seq.ready.is_empty() {
            self.kv.roll_back(&mut seq.cache);
        }
    }

    /// The sequences that were admitted for the first time since the last call, in that order. The owner's clock says how
    /// long they waited.
    pub fn take_admitted(&mut self) -> Vec<SeqId> {
        std::mem::take(&mut self.admitted)
    }

    /// Sequences that decode, by rank: the next step computes one certain token of each.
    pub fn decoding(&self) -> impl Iterator<Item = SeqId> {
        self.running.iter().filter(|seq| seq.phase == Phase::Decode).map(|seq| seq.id)
    }

    /// Whether the next step may also compute prompts: something waits, or is not through with its own.
    pub fn has_prompts(&self) -> bool {
        !self.waiting.is_empty() || self.running.iter().any(|seq| seq.phase != Phase::Decode)
    }

    /// Tokens that the farthest of the prompts has behind it which are being computed.
    pub fn deepest_prompt(&self) -> u32 {
        let prompts = self.running.iter().filter(|seq| seq.phase == Phase::Prefill);
        prompts.map(|seq| seq.cache.len() as u32).max().unwrap_or(0)
    }

    /// Whether tokens of a verified run wait for [`Scheduler::deliver`].
    pub fn has_ready(&self) -> bool {
        self.running.iter().any(|seq| !seq.ready.is_empty())
    }

    /// The most drafts for `seq` that a step could use; 0 for a sequence that does not decode.
    pub fn draft_capacity(&self, seq: SeqId) -> usize {
        self.running_at(seq).map_or(0, |at| self.running[at].draft_capacity())
    }

    /// Offers guesses of the tokens that follow the last one of `seq`, for the next step only. As many of them run as
    /// find room after everything else: they take no budget, no row and no block that anybody else could use in that
    /// step, so that nobody is delayed, preempted or evicted for them.
    pub fn propose(&mut self, seq: SeqId, mut drafts: Vec<u32>) {
        if let Some(at) = self.running_at(seq) {
            drafts.truncate(self.running[at].draft_capacity());
            self.running[at].drafts = drafts;
        }
    }

    /// Ends every sequence of the steps in flight with an error and leaves the others as they are: for a step that did
    /// not run (device lost, out of memory).
    pub fn fail_step(&mut self, why: &str) -> Vec<SeqUpdate> {
        self.forget_assumed();
        let failed = std::mem::take(&mut self.in_flight);
        let mut updates = Vec::new();
        for entry in failed {
            if let Some(at) = self.in_flight_at(&entry) {
                let mut seq = self.running.remove(at);
                let reason = seq.ending.take().unwrap_or_else(|| FinishReason::Error(why.to_owned()));
                updates.push(self.close(seq, reason));
            }
        }
        updates
    }

    /// Gives a sequence's blocks back and reports its end.
    pub(super) fn close(&mut self, mut seq: Sequence, reason: FinishReason) -> SeqUpdate {
        self.kv.close(&mut seq.cache);
        self.shares.leave(seq.key);
        seq.enter(Phase::Finished);
        SeqUpdate::Finished { seq: seq.id, reason, usage: seq.usage() }
    }

    /// Whether no request is left.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.running.is_empty()
    }

    /// Requests in the queue, preempted ones included.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Sequences that hold a seat.
    pub fn running(&self) -> usize {
        self.running.len()
    }

    /// The state of a sequence, or `None` when it is unknown or over.
    pub fn phase(&self, seq: SeqId) -> Option<Phase> {
        self.running.iter().chain(self.waiting.iter()).find(|other| other.id == seq).map(|seq| seq.phase)
    }

    /// The cache's bookkeeping.
    pub fn kv(&self) -> &KvManager {
        &self.kv
    }

    /// The cache's books, for who takes and gives back blocks between steps.
    pub fn kv_mut(&mut self) -> &mut KvManager {
        &mut self.kv
    }

    /// The limits it was made with.
    pub fn config(&self) -> &SchedulerConfig {
        &self.config
    }

    /// Forgets the cached beginnings that no sequence holds.
    pub fn forget_cached(&mut self) {
        self.kv.forget();
    }

    /// Counters since the beginning.
    pub fn stats(&self) -> SchedulerStats {
        self.stats
    }

    /// Verifies the cache's invariants over all sequences; linear in the pools, for tests.
    ///
    /// # Errors
    /// The first [`Violation`], always a bug of this crate.
    pub fn check(&self) -> Result<(), Violation> {
        let seqs = || self.running.iter().chain(self.waiting.iter());
        self.kv.check(seqs().map(|seq| &seq.cache))?;
        let between_steps = self.in_flight.is_empty() && !self.has_ready();
        seqs().filter(|_| between_steps).try_for_each(|seq| self.kv.check_tight(&seq.cache))
    }
}

/// Whether a run is what drafts can give: all tokens but the last are drafts.
fn verified(run: &[u32], drafts: &[u32]) -> bool {
    run.split_last().is_some_and(|(_, accepted)| drafts.starts_with(accepted))
}
