//! Plays random commands against a scheduler and checks everything that can be seen from outside.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

use super::super::{
    Batch, BatchEntry, EntryOutcome, FinishOutcome, FinishReason, LogitsWanted, Phase, Scheduler, SeqId, SeqUpdate,
    StepResult,
};
use super::device::SchedSimDevice;
use super::job::{SchedSimRequest, VOCABULARY};
use super::ranks::Ranks;
use super::{Rng, SchedSimSetup, chance, mix, range};
use crate::kv::KvManager;

/// What a simulation met, so that the tests can show that they were not idle.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Coverage {
    pub(super) steps: u64,
    pub(super) finished: u64,
    pub(super) preemptions: u64,
    pub(super) hit_tokens: u64,
    pub(super) resumed_with_hit: u64,
    pub(super) window_blocks_dropped: u64,
    pub(super) cancelled_in_flight: u64,
    pub(super) cancelled_waiting: u64,
    pub(super) rejected: u64,
    pub(super) mixed_steps: u64,
    pub(super) all_rows: u64,
    pub(super) drafted: u64,
    pub(super) accepted: u64,
    pub(super) cancelled_in_run: u64,
    /// Times somebody more urgent became the first of those who run.
    pub(super) outranked: u64,
    /// Steps with as many tokens of prompts as there may be beside decodes.
    pub(super) limited: u64,
    /// A hash of every batch, in order.
    pub(super) trace: u64,
}

pub(super) struct SchedSimDriver {
    setup: SchedSimSetup,
    rng: Rng,
    sched: Scheduler,
    device: SchedSimDevice,
    jobs: BTreeMap<SeqId, SchedSimRequest>,
    step: u64,
    /// The most tokens of prompts in a step that also decodes.
    limit: Option<NonZeroUsize>,
    ranks: Ranks,
    /// Judge only by what the device and the caller can see, not by the bookkeeping's own checker.
    blind: bool,
    pub(super) coverage: Coverage,
}

impl SchedSimDriver {
    pub(super) fn new(seed: u64, blind: bool) -> Self {
        let mut rng = Rng::new(mix(seed));
        let setup = SchedSimSetup::random(&mut rng);
        let kv = KvManager::new(&setup.groups, setup.prefix_cache).unwrap();
        let sched = Scheduler::new(setup.config.clone(), kv).unwrap();
        let device = SchedSimDevice::new(&setup.groups);
        let (jobs, coverage, ranks) = (BTreeMap::new(), Coverage::default(), Ranks::default());
        SchedSimDriver { setup, rng, sched, device, jobs, step: 0, limit: None, ranks, blind, coverage }
    }

    /// `steps` steps with arrivals, then without until nothing is left; everything must be given back.
    pub(super) fn run(&mut self, steps: u64) -> Result<(), String> {
        for _ in 0..steps {
            self.arrive();
            self.step(true)?;
        }
        let last = self.jobs.values().map(|job| job.deadline).max().unwrap_or(0);
        while !self.sched.is_idle() {
            self.step(false)?;
            if self.step > last + 1 {
                return Err("the queue does not drain".to_owned());
            }
        }
        self.check_empty()
    }

    fn arrive(&mut self) {
        if !chance(&mut self.rng, self.setup.arrivals) {
            return;
        }
        let request = self.setup.request(&mut self.rng);
        let chunk = self.setup.config.prefill_chunk.min(self.setup.config.token_budget) as usize;
        let capacity = self.sched.kv().max_positions(chunk).saturating_add(1);
        let Ok(id) = self.sched.add(request.clone()) else {
            self.coverage.rejected += 1;
            return;
        };
        let mut job = SchedSimRequest::new(request, capacity.min(self.setup.config.max_context as usize));
        // The first sequence runs at least one token a step and loses none unless somebody more urgent comes, so nobody
        // waits for longer than the tokens of all requests before it, and those that are computed again.
        let before: usize = self.jobs.values().map(|job| job.final_len).sum();
        let losses = if self.setup.priorities > 1 { self.jobs.len() } else { 0 };
        job.deadline = self.step + (before * (1 + losses) + job.final_len) as u64 + 1;
        self.jobs.values_mut().for_each(|other| other.deadline += other.delay(&job, before) as u64);
        self.jobs.insert(id, job);
    }

    fn step(&mut self, noisy: bool) -> Result<(), String> {
        self.step += 1;
        if noisy && chance(&mut self.rng, self.setup.cancels) {
            self.cancel()?;
        }
        if chance(&mut self.rng, self.setup.limits) {
            self.limit = NonZeroUsize::new(range(&mut self.rng, 0, 40));
            self.sched.limit_prefill(self.limit);
        }
        let preempted_before = self.sched.stats().preemptions;
        let plain = self.sched.clone();
        self.propose();
        let batch = self.sched.schedule().map_err(|error| error.to_string())?;
        self.check_books("schedule")?;
        self.check_batch(&batch)?;
        self.coverage.outranked += u64::from(self.ranks.check(&self.sched, &batch)?);
        self.check_unnoticed(&batch, plain)?;
        self.observe(&batch, preempted_before);
        if batch.entries.is_empty() {
            return Ok(());
        }
        if noisy && chance(&mut self.rng, self.setup.cancels) {
            self.cancel()?;
        }
        if noisy && chance(&mut self.rng, 20) {
            self.arrive();
        }
        let updates = if noisy && chance(&mut self.rng, self.setup.failures) {
            self.sched.fail_step("device lost")
        } else {
            self.device.run(&batch, |entry| &self.jobs[&entry.seq])?;
            let results: Vec<StepResult> = batch.entries.iter().map(|entry| self.result(entry)).collect();
            self.sched.commit(&results).map_err(|error| error.to_string())?
        };
        updates.into_iter().try_for_each(|update| self.take(update))?;
        self.check_books("commit")?;
        while self.sched.has_ready() {
            if self.sched.schedule().is_ok() {
                return Err("scheduled before all of the last step was delivered".to_owned());
            }
            if noisy && chance(&mut self.rng, self.setup.cancels) {
                self.coverage.cancelled_in_run += 1;
                self.cancel()?;
            }
            self.sched.deliver().into_iter().try_for_each(|update| self.take(update))?;
            self.check_books("delivery")?;
        }
        self.check_deadlines()
    }

    /// Guesses for some of the decoding sequences, often right and sometimes wrong from some place on.
    fn propose(&mut self) {
        for (&seq, job) in &self.jobs {
            if !chance(&mut self.rng, self.setup.drafts) {
                continue;
            }
            let mut drafts = job.future(range(&mut self.rng, 0, 9));
            if !drafts.is_empty() && chance(&mut self.rng, 50) {
                let wrong = range(&mut self.rng, 0, drafts.len() - 1);
                drafts[wrong] = (drafts[wrong] + 1) % VOCABULARY as u32;
            }
            self.sched.propose(seq, drafts);
        }
    }

    /// Drafts change nothing else: without them the same step is planned, with the same blocks, and as many are cached.
    fn check_unnoticed(&self, batch: &Batch, mut plain: Scheduler) -> Result<(), String> {
        if batch.entries.iter().all(|entry| entry.drafts == 0) {
            return Ok(());
        }
        let expected = plain.schedule().map_err(|error| error.to_string())?;
        let mut stripped = batch.clone();
        for (entry, plain) in stripped.entries.iter_mut().zip(&expected.entries) {
            let drafts = std::mem::take(&mut entry.drafts) as usize;
            entry.tokens.truncate(entry.tokens.len() - drafts);
            entry.rows.truncate(entry.rows.len() - drafts);
            entry.slots.iter_mut().for_each(|slots| slots.truncate(slots.len() - drafts));
            entry.tables.iter_mut().zip(&plain.tables).for_each(|(table, plain)| table.truncate(plain.len()));
        }
        if stripped != expected {
            return Err(format!("drafts changed the step: {stripped:?} instead of {expected:?}"));
        }
        let kv = (self.sched.kv(), plain.kv());
        for group in 0..kv.0.groups().len() {
            let (with, without) = (kv.0.cached_blocks(group), kv.1.cached_blocks(group));
            if with != without {
                return Err(format!("group {group}: drafts leave {with} cached blocks of {without}"));
            }
        }
        Ok(())
    }

    fn result(&self, entry: &BatchEntry) -> StepResult {
        let upto = entry.start as usize + entry.tokens.len();
        let outcome = if self.setup.failures > 0 && mix(self.step ^ entry.seq.0).is_multiple_of(200) {
            EntryOutcome::Failed(FinishReason::Error("logits are not a number".to_owned()))
        } else if entry.drafts > 0 {
            EntryOutcome::Run(self.jobs[&entry.seq].verify(entry.drafted()))
        } else if entry.sample {
            EntryOutcome::Token(self.jobs[&entry.seq].sample(upto - 1))
        } else {
            EntryOutcome::Ran
        };
        StepResult { seq: entry.seq, outcome }
    }

    fn cancel(&mut self) -> Result<(), String> {
        let alive: Vec<SeqId> = self.jobs.keys().copied().collect();
        if alive.is_empty() {
            return Ok(());
        }
        let seq = alive[range(&mut self.rng, 0, alive.len() - 1)];
        let waiting = matches!(self.sched.phase(seq), Some(Phase::Waiting | Phase::Preempted));
        match self.sched.cancel(seq) {
            FinishOutcome::Now(update) => {
                self.coverage.cancelled_waiting += u64::from(waiting);
                self.take(update)?;
            }
            FinishOutcome::AtCommit => self.coverage.cancelled_in_flight += 1,
            FinishOutcome::Unknown => return Err(format!("sequence {seq} is alive but unknown")),
        }
        if self.sched.cancel(SeqId(u64::MAX)) != FinishOutcome::Unknown {
            return Err("cancelled a sequence that never was".to_owned());
        }
        Ok(())
    }

    fn take(&mut self, update: SeqUpdate) -> Result<(), String> {
        match update {
            SeqUpdate::Token { seq, token, position } => {
                let job = self.jobs.get_mut(&seq).ok_or("token of a sequence that is over")?;
                if position != job.tokens.len() {
                    return Err(format!("sequence {seq}: token at {position}, expected {}", job.tokens.len()));
                }
                job.push(token);
                // A token of a run comes with the row it was sampled from.
                job.rows_seen = job.rows_seen.max(if job.delivers_all() { job.tokens.len() - 1 } else { 0 });
            }
            SeqUpdate::Finished { seq, reason, usage } => {
                let job = self.jobs.remove(&seq).ok_or("a sequence ended twice")?;
                job.check_end(&reason).map_err(|what| format!("sequence {seq}: {what}"))?;
                let counts = (usage.prompt_tokens, usage.new_tokens);
                let expected = (job.request.prompt.len(), job.tokens.len() - job.request.prompt.len());
                if counts != expected || usage.cached_tokens > usage.prompt_tokens {
                    return Err(format!("sequence {seq}: usage {usage:?}, expected {expected:?}"));
                }
                self.coverage.finished += u64::from(!matches!(reason, FinishReason::Error(_)));
            }
        }
        Ok(())
    }

    fn check_batch(&mut self, batch: &Batch) -> Result<(), String> {
        let config = &self.setup.config;
        if batch.tokens() > config.token_budget as usize {
            return Err(format!("{} tokens exceed the budget of {}", batch.tokens(), config.token_budget));
        }
        if batch.rows() > config.max_rows as usize {
            return Err(format!("{} rows of logits exceed the {} a step may have", batch.rows(), config.max_rows));
        }
        if self.sched.running() > config.max_seqs as usize {
            return Err(format!("{} sequences run, at most {}", self.sched.running(), config.max_seqs));
        }
        let prefills = batch.entries.iter().filter(|entry| entry.phase == Phase::Prefill).count();
        if prefills > config.max_prefills as usize {
            return Err(format!("{prefills} prefill chunks, at most {}", config.max_prefills));
        }
        let of_prompts = |entry: &&BatchEntry| entry.phase == Phase::Prefill;
        let prompts: usize = batch.entries.iter().filter(of_prompts).map(|entry| entry.tokens.len()).sum();
        if let Some(most) = self.limit.filter(|_| prefills < batch.entries.len()) {
            self.coverage.limited += u64::from(prompts == most.get());
            if prompts > most.get() {
                return Err(format!("{prompts} tokens of prompts beside decodes, at most {most}"));
            }
        }
        let mut seen = Vec::new();
        for entry in &batch.entries {
            if seen.contains(&entry.seq) || self.sched.phase(entry.seq) != Some(entry.phase) {
                return Err(format!("sequence {} is in the batch twice or in another phase", entry.seq));
            }
            seen.push(entry.seq);
            let chunk = entry.phase == Phase::Prefill && entry.tokens.len() > config.prefill_chunk as usize;
            if chunk || (entry.phase == Phase::Decode && entry.certain().len() != 1) {
                return Err(format!("sequence {} runs {} tokens", entry.seq, entry.tokens.len()));
            }
            let job = self.jobs.get_mut(&entry.seq).ok_or("a sequence that is over runs")?;
            check_rows(entry, job)?;
        }
        Ok(())
    }

    fn observe(&mut self, batch: &Batch, preempted_before: u64) {
        let stats = self.sched.stats();
        let coverage = &mut self.coverage;
        coverage.steps += u64::from(!batch.entries.is_empty());
        coverage.preemptions = stats.preemptions;
        coverage.hit_tokens = stats.prefix_hit;
        (coverage.drafted, coverage.accepted) = (stats.drafted, stats.accepted);
        let kinds = |phase| batch.entries.iter().any(|entry| entry.phase == phase);
        coverage.mixed_steps += u64::from(kinds(Phase::Prefill) && kinds(Phase::Decode));
        for entry in &batch.entries {
            let resumed = entry.phase == Phase::Prefill && self.jobs[&entry.seq].tokens.len() > entry.tokens.len();
            let again = resumed && self.jobs[&entry.seq].tokens.len() > self.jobs[&entry.seq].request.prompt.len();
            coverage.resumed_with_hit += u64::from(again && entry.start > 0);
            coverage.window_blocks_dropped += entry.tables.iter().flatten().filter(|&&block| block < 0).count() as u64;
            coverage.all_rows += entry.rows.len().saturating_sub(1) as u64;
        }
        let text = format!("{batch:?} {}", stats.preemptions - preempted_before);
        coverage.trace = text.bytes().fold(coverage.trace, |hash, byte| mix(hash ^ u64::from(byte)));
    }

    fn check_books(&self, after: &str) -> Result<(), String> {
        if self.blind {
            return Ok(());
        }
        self.sched.check().map_err(|violation| format!("after {after}: {violation}"))
    }

    fn check_deadlines(&self) -> Result<(), String> {
        match self.jobs.iter().find(|(_, job)| self.step > job.deadline) {
            Some((seq, job)) => Err(format!("sequence {seq} starves: step {} of {}", self.step, job.deadline)),
            None => Ok(()),
        }
    }

    fn check_empty(&self) -> Result<(), String> {
        self.sched.kv().check([]).map_err(|violation| format!("at the end: {violation}"))?;
        let kv = self.sched.kv();
        for group in 0..kv.groups().len() {
            let (used, free, cached) = (kv.blocks_in_use(group), kv.free_blocks(group), kv.cached_blocks(group));
            if used != 0 || free + cached != kv.total_blocks(group) {
                return Err(format!("group {group}: {used} used, {free} free, {cached} cached at the end"));
            }
        }
        if self.jobs.is_empty() { Ok(()) } else { Err("idle with requests left".to_owned()) }
    }
}

/// The rows of an entry: the last position of a sequence that samples, or each position exactly once in order.
fn check_rows(entry: &BatchEntry, job: &mut SchedSimRequest) -> Result<(), String> {
    let (start, count) = (entry.start as usize, entry.tokens.len());
    let certain = entry.certain().len();
    let at_end = start + certain == job.tokens.len();
    if entry.sample != (at_end && job.tokens.len() < job.final_len) {
        return Err(format!("sequence {} samples at the wrong place", entry.seq));
    }
    let rows: Vec<usize> = entry.rows.iter().map(|&row| start + row as usize).collect();
    let expected: Vec<usize> = match job.request.logits {
        LogitsWanted::Last if entry.sample => (start + certain - 1..start + count).collect(),
        LogitsWanted::Last => Vec::new(),
        LogitsWanted::All => (job.rows_seen..start + count).collect(),
    };
    if rows != expected {
        return Err(format!("sequence {} has rows {rows:?}, expected {expected:?}", entry.seq));
    }
    // Rows of drafts are delivered with the tokens they give.
    job.rows_seen += expected.len() - entry.drafts as usize;
    Ok(())
}
