//! Choosing the next step: the policy itself.

use super::batch::{Batch, BatchEntry};
use super::core::Scheduler;
use super::error::StepInFlight;
use super::phase::Phase;
use super::sequence::Sequence;

/// What is left to give in the step being planned.
struct Left {
    tokens: usize,
    rows: usize,
    prefills: usize,
    /// Somebody lost its blocks in this step, so nobody is admitted: it would lose them next.
    preempted: bool,
}

impl Scheduler {
    /// Plans the next step: the running sequences from the oldest to the newest, then the queue from its head, within
    /// the token budget. A sequence that finds no blocks takes those of the newest.
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
        let mut entries: Vec<BatchEntry> = Vec::new();
        let mut at = 0;
        while at < self.running.len() || self.admit(&left) {
            let count = self.share(at, &left);
            if count > 0 {
                if !self.make_room(at, count, &mut left) {
                    break;
                }
                left.tokens = left.tokens.saturating_sub(count);
                left.prefills -= usize::from(self.running[at].phase == Phase::Prefill);
                let entry = self.entry(at, count);
                left.rows = left.rows.saturating_sub(entry.rows.len());
                entries.push(entry);
            }
            at += 1;
        }
        self.add_drafts(&mut entries, &mut left);
        // `Phase` orders decodes before prefills.
        entries.sort_by_key(|entry| (entry.phase, entry.seq));
        self.begin(entries)
    }

    /// Puts drafts behind the tokens of decodes, the oldest first, with what everything else has left of the step and
    /// of the blocks that hold nothing. Drafts that find no room are forgotten.
    fn add_drafts(&mut self, entries: &mut [BatchEntry], left: &mut Left) {
        for seq in &mut self.running {
            if seq.drafts.is_empty() {
                continue;
            }
            let entry = entries.iter_mut().find(|entry| entry.seq == seq.id && entry.phase == Phase::Decode);
            if let Some(entry) = entry.filter(|entry| entry.sample) {
                let certain = seq.cache.len() + entry.tokens.len();
                let wanted = certain + seq.drafts.len().min(seq.draft_room()).min(left.tokens).min(left.rows);
                let drafts = self.kv.reserve_unused(&mut seq.cache, wanted) - certain;
                left.tokens = left.tokens.saturating_sub(drafts);
                left.rows = left.rows.saturating_sub(drafts);
                *entry = seq.entry(entry.tokens.len(), drafts, self.kv.groups().len());
            }
            seq.drafts.clear();
        }
    }

    fn full_step(&self) -> Left {
        Left {
            tokens: self.config.token_budget as usize,
            rows: self.config.max_rows as usize,
            prefills: self.config.max_prefills as usize,
            preempted: false,
        }
    }

    /// Tokens of the running sequence at index `at` in this step. One token and one row are kept back for each newer
    /// one, which `token_budget` and `max_rows` of at least `max_seqs` make possible, so nobody who runs is passed over
    /// for lack of budget.
    fn share(&self, at: usize, left: &Left) -> usize {
        let seq = &self.running[at];
        let newer = self.running.len() - at - 1;
        let rows = if seq.wants_all_logits() { left.rows.saturating_sub(newer) } else { usize::MAX };
        let budget = left.tokens.saturating_sub(newer).min(rows);
        match seq.phase {
            Phase::Prefill if left.prefills == 0 => 0,
            Phase::Prefill => seq.uncomputed().min(self.config.prefill_chunk as usize).min(budget),
            _ => seq.uncomputed().min(budget),
        }
    }

    /// Reserves room for `count` more positions of the sequence at `at`, preempting the newest sequence as long as
    /// there is none. False when that was the sequence itself.
    fn make_room(&mut self, at: usize, count: usize, left: &mut Left) -> bool {
        loop {
            let cache = &mut self.running[at].cache;
            let upto = cache.len() + count;
            if self.kv.reserve(cache, upto).is_ok() {
                return true;
            }
            left.preempted = true;
            let newest = self.running.len() - 1;
            self.preempt(newest);
            if newest == at {
                return false;
            }
        }
    }

    /// Takes the blocks of a running sequence and puts it at the head of the queue. Its full blocks stay findable
    /// until they are evicted, so much of the recomputation may be a prefix hit.
    fn preempt(&mut self, at: usize) {
        let mut seq = self.running.remove(at);
        self.kv.close(&mut seq.cache);
        seq.drafts.clear();
        seq.enter(Phase::Preempted);
        seq.preemptions += 1;
        self.stats.preemptions += 1;
        self.waiting.push_front(seq);
    }

    /// Admits the head of the queue when a seat, budget, and blocks for all its tokens beside those the running
    /// sequences still need are there.
    fn admit(&mut self, left: &Left) -> bool {
        let seats = self.running.len() < self.config.max_seqs as usize;
        if !seats || left.preempted || left.tokens == 0 || left.rows == 0 || left.prefills == 0 {
            return false;
        }
        let Some(mut seq) = self.waiting.pop_front() else { return false };
        seq.cache = self.kv.open(&seq.tokens, &seq.salt, seq.max_hit());
        if !self.has_blocks_for(&seq) {
            self.kv.close(&mut seq.cache);
            self.waiting.push_front(seq);
            return false;
        }
        self.stats.prefix_queried += seq.tokens.len() as u64;
        self.stats.prefix_hit += seq.cache.len() as u64;
        let hit = seq.cache.len().min(seq.prompt_len);
        seq.cached_tokens.get_or_insert(hit);
        seq.enter(Phase::Prefill);
        self.running.push(seq);
        true
    }

    fn has_blocks_for(&self, newcomer: &Sequence) -> bool {
        let mut wanted = vec![0; self.kv.groups().len()];
        for seq in self.running.iter().chain([newcomer]) {
            let chunk = self.config.chunk().min(seq.uncomputed());
            self.kv.add_outstanding(&seq.cache, seq.tokens.len(), chunk, &mut wanted);
        }
        self.kv.has_available(&wanted)
    }

    fn entry(&self, at: usize, count: usize) -> BatchEntry {
        self.running[at].entry(count, 0, self.kv.groups().len())
    }
}
