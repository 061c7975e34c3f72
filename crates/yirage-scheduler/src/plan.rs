//! Choosing the next step: the policy itself.

use super::batch::{Batch, BatchEntry};
use super::core::Scheduler;
use super::error::StepInFlight;
use super::phase::Phase;
use super::rank::Rank;
use super::sequence::Sequence;
use std::num::NonZeroUsize;

/// What is left to give in the step being planned.
struct StepBudget {
    tokens: usize,
    rows: usize,
    prefills: usize,
    prefill_tokens: usize,
    /// Somebody lost its blocks in this step, so nobody is admitted: it would lose them next.
    preempted: bool,
}

impl Scheduler {
    /// Plans the next step: the running sequences by rank, then the queue from its head, within the token budget. A
    /// sequence that finds no blocks takes those of the last.
    ///
    /// An empty batch means that there is nothing to do; otherwise the step is in flight until
    /// [`Scheduler::commit`] or [`Scheduler::fail_step`].
    ///
    /// # Errors
    /// [`StepInFlight`] when the last step has no results yet, or not all of them are delivered.
    pub fn schedule(&mut self) -> Result<Batch, StepInFlight> {
        if !self.in_flight.is_empty() || self.has_ready() {
            return Err(StepInFlight { step: self.step });
        }
        Ok(self.plan())
    }

    /// The next step, whatever is in flight.
    pub(super) fn plan(&mut self) -> Batch {
        let mut left = self.full_step();
        let mut entries = Vec::new();
        self.admit_urgent(&left);
        let mut at = 0;
        while at < self.running.len() {
            let behind = self.running.len() - at - 1;
            let count = self.tokens_for(at, behind, &left);
            if count > 0 {
                if !self.reserve_or_preempt(at, count, &mut left) {
                    break;
                }
                entries.push(self.take_part(at, count, &mut left));
            }
            at += 1;
        }
        while let Some(at) = self.admit(&left) {
            let count = self.tokens_for(at, 0, &left);
            if !self.reserve(at, count) {
                self.preempt(at);
                break;
            }
            entries.push(self.take_part(at, count, &mut left));
        }
        // `Phase` orders decodes before prefills.
        entries.sort_by_key(|(rank, entry)| (entry.phase, *rank));
        self.add_drafts(&mut entries, &mut left);
        self.begin(entries)
    }

    /// The running sequence at `at` takes part with its next `count` tokens, for which there is room.
    fn take_part(&mut self, at: usize, count: usize, left: &mut StepBudget) -> (Rank, BatchEntry) {
        let (seq, groups) = (&self.running[at], self.kv.groups().len());
        let entry = seq.entry(count, 0, groups);
        left.tokens = left.tokens.saturating_sub(count);
        left.rows = left.rows.saturating_sub(entry.rows.len());
        if seq.phase == Phase::Prefill {
            left.prefills -= 1;
            left.prefill_tokens = left.prefill_tokens.saturating_sub(count);
        }
        self.shares.charge(seq.key, count);
        (seq.rank, entry)
    }

    /// Puts drafts behind the tokens of decodes, by rank, with what everything else has left of the step and
    /// of the blocks that hold nothing. Drafts that find no room are forgotten.
    fn add_drafts(&mut self, entries: &mut [(Rank, BatchEntry)], left: &mut StepBudget) {
        for seq in &mut self.running {
            if seq.drafts.is_empty() {
                continue;
            }
            let own = entries.iter_mut().map(|(_, entry)| entry).find(|entry| entry.seq == seq.id);
            if let Some(entry) = own.filter(|entry| entry.phase == Phase::Decode && entry.sample) {
                let certain = seq.cache.len() + entry.tokens.len();
                let wanted = certain + seq.drafts.len().min(seq.draft_capacity()).min(left.tokens).min(left.rows);
                let drafts = self.kv.reserve_unused(&mut seq.cache, wanted) - certain;
                left.tokens = left.tokens.saturating_sub(drafts);
                left.rows = left.rows.saturating_sub(drafts);
                *entry = seq.entry(entry.tokens.len(), drafts, self.kv.groups().len());
            }
            seq.drafts.clear();
        }
    }

    fn full_step(&self) -> StepBudget {
        let decodes = self.running.iter().any(|seq| seq.phase == Phase::Decode);
        let limit = self.prefill_limit.filter(|_| decodes);
        StepBudget {
            tokens: self.config.token_budget as usize,
            rows: self.config.max_rows as usize,
            prefills: self.config.max_prefills as usize,
            prefill_tokens: limit.map_or(usize::MAX, NonZeroUsize::get),
            preempted: false,
        }
    }

    /// Tokens of the running sequence at index `at` in this step. One token and one row are kept back for each of those
    /// `behind` it, which `token_budget` and `max_rows` of at least `max_seqs` make possible, so nobody who runs is passed
    /// over for lack of budget.
    fn tokens_for(&self, at: usize, behind: usize, left: &StepBudget) -> usize {
        let seq = &self.running[at];
        let rows = if seq.wants_all_logits() { left.rows.saturating_sub(behind) } else { usize::MAX };
        let budget = left.tokens.saturating_sub(behind).min(rows);
        let chunk = (self.config.prefill_chunk as usize).min(left.prefill_tokens);
        match seq.phase {
            Phase::Prefill if left.prefills == 0 => 0,
            Phase::Prefill => seq.uncomputed().min(chunk).min(budget),
            _ => seq.uncomputed().min(budget),
        }
    }

    /// Reserves room for `count` more positions of the sequence at `at`, preempting the last sequence as long as there is
    /// none. False when that was the sequence itself.
    fn reserve_or_preempt(&mut self, at: usize, count: usize, left: &mut StepBudget) -> bool {
        while !self.reserve(at, count) {
            left.preempted = true;
            let last = self.running.len() - 1;
            self.preempt(last);
            if last == at {
                return false;
            }
        }
        true
    }

    /// Whether there is room for `count` more positions of the sequence at `at`, which it then has.
    fn reserve(&mut self, at: usize, count: usize) -> bool {
        let cache = &mut self.running[at].cache;
        let upto = cache.len() + count;
        self.kv.reserve(cache, upto).is_ok()
    }

    /// Takes the blocks of a running sequence and puts it back into the queue. Its full blocks stay findable until they
    /// are evicted, so much of the recomputation may be a prefix hit.
    fn preempt(&mut self, at: usize) {
        let mut seq = self.running.remove(at);
        self.kv.close(&mut seq.cache);
        seq.drafts.clear();
        seq.enter(Phase::Preempted);
        seq.preemptions += 1;
        self.stats.preemptions += 1;
        self.waiting.put(seq);
    }

    /// Admits those who are more urgent than somebody who runs, before anything is given to those.
    fn admit_urgent(&mut self, left: &StepBudget) {
        let last = |running: &[Sequence]| running.last().map(|seq| seq.rank.priority);
        while self.waiting.priority().is_some_and(|next| last(&self.running).is_some_and(|last| next < last)) {
            if self.admit(left).is_none() {
                return;
            }
        }
    }

    /// Admits the head of the queue when a seat, budget, and blocks for all its tokens beside those the running
    /// sequences still need are there; where it then stands.
    fn admit(&mut self, left: &StepBudget) -> Option<usize> {
        let seats = self.running.len() < self.config.max_seqs as usize;
        let prefill = left.prefills > 0 && left.prefill_tokens > 0;
        if !seats || left.preempted || left.tokens == 0 || left.rows == 0 || !prefill {
            return None;
        }
        let mut seq = self.waiting.pop(&self.shares)?;
        seq.cache = self.kv.open(&seq.tokens, &seq.salt, seq.max_hit());
        if !self.has_blocks_for(&seq) {
            self.kv.close(&mut seq.cache);
            self.waiting.put(seq);
            return None;
        }
        self.stats.prefix_queried += seq.tokens.len() as u64;
        self.stats.prefix_hit += seq.cache.len() as u64;
        let hit = seq.cache.len().min(seq.prompt_len);
        seq.cached_tokens.get_or_insert(hit);
        seq.enter(Phase::Prefill);
        if seq.rank.turn.is_none() {
            seq.rank.turn = Some(self.turns);
            self.turns += 1;
            self.admitted.push(seq.id);
        }
        let at = self.running.partition_point(|other| other.rank < seq.rank);
        self.running.insert(at, seq);
        Some(at)
    }

    fn has_blocks_for(&self, newcomer: &Sequence) -> bool {
        let mut wanted = vec![0; self.kv.groups().len()];
        for seq in self.running.iter().chain([newcomer]) {
            let chunk = self.config.chunk().min(seq.uncomputed());
            self.kv.add_outstanding(&seq.cache, seq.tokens.len(), chunk, &mut wanted);
        }
        self.kv.has_available(&wanted)
    }
}
