//! A smaller model that guesses what the model will say.
//!
//! It keeps a cache of its own for each sequence. Before it guesses it reads what it has not read; what it computed for
//! guesses that came true stays, the rest is written over. Positions of guesses are never counted as computed, so that
//! sliding windows keep what going back needs.
//!
//! It deliberately knows nothing of the verifying model but its tokens, and never makes room at anybody's cost: a
//! sequence for which its cache has no block gets no guesses.

use super::recurrent::cannot_guess;
use crate::block_positions::block_positions;
use crate::error::EngineError;
use crate::kv::{KvManager, SeqCache};
use crate::load::{self, LoadProgressFn};
use crate::memory::LoadBytes;
use crate::options::{CacheSize, EngineOptions, Speculation};
use crate::packed::Notice;
use crate::plans::PlanProvider;
use crate::runner::{Runner, RunnerInputs};
use crate::sampling::{CheckedParams, Sampler, SamplerInput, TokenCounts};
use crate::scheduler::{Batch, BatchEntry, Phase, SeqId};
use crate::variants::{self, ModelMatmuls};
use std::collections::HashMap;
use std::sync::Arc;
use yirage_hal::Device;
use yirage_model::Checkpoint;

/// Unread tokens that are read together with the first guess.
const READ_ALONG: usize = 16;

/// A sequence that wants guesses.
pub(crate) struct DraftJob<'a> {
    pub(crate) seq: SeqId,
    /// All its tokens.
    pub(crate) tokens: &'a [u32],
    /// Guesses wanted, at least one.
    pub(crate) length: usize,
    pub(crate) params: &'a CheckedParams,
    pub(crate) counts: &'a TokenCounts,
    /// Positions it will have when it is whole.
    pub(crate) whole: u32,
    /// Distinguishes cached beginnings.
    pub(crate) salt: &'a [u8],
}

/// What the draft model has of a sequence.
struct DraftSeqCache {
    cache: SeqCache,
    /// The tokens whose keys and values were computed; those behind the cache's length were guesses.
    computed: Vec<u32>,
}

/// A loaded draft model.
pub(crate) struct DraftModel {
    runner: Runner,
    sampler: Sampler,
    kv: KvManager,
    vocabulary: u32,
    /// Tokens of one step.
    chunk: usize,
    /// Sequences of one step.
    seqs: usize,
    caches: HashMap<SeqId, DraftSeqCache>,
    bytes: LoadBytes,
}

impl DraftModel {
    /// Loads the model with the sizes of the engine's `options`, and what is to be told of its kernels' variant. Its cache
    /// holds `sequences` of full length.
    pub(crate) fn load(
        checkpoint: &Checkpoint,
        device: Arc<dyn Device>,
        (options, sequences): (&EngineOptions, u32),
        plans: &PlanProvider,
        progress: LoadProgressFn,
    ) -> Result<(DraftModel, Vec<Notice>), EngineError> {
        let speculation = Speculation::default();
        let cache = CacheSize::Sequences(sequences);
        let options = EngineOptions {
            hidden: false,
            logit_rows: options.max_seqs,
            speculation,
            cache,
            adapters: Vec::new(),
            ..options.clone()
        };
        let prepared = load::prepare(checkpoint, &*device, &options, plans)?;
        if prepared.groups.iter().any(|config| config.group.is_recurrent()) {
            return Err(cannot_guess(&prepared.model.name));
        }
        let block = block_positions(&prepared.model);
        let kv = KvManager::new(&prepared.groups, options.prefix_cache)?.with_block_positions(block);
        let mut bindings = load::bind(checkpoint, &*device, &prepared, HashMap::new(), progress)?;
        let inputs = RunnerInputs {
            groups: prepared.groups.len(),
            dynamic_rope: prepared.model.dynamic_rope.clone(),
            embedded: prepared.model.embedded,
            block,
            scales: 0,
        };
        let mut told = Vec::new();
        let products = ModelMatmuls::of(&prepared, options.precision);
        variants::bind(&*device, products, &mut bindings, &options.tuning, &mut told)?;
        let draft = DraftModel {
            runner: Runner::new(&*device, &prepared.plans, &bindings, inputs, options.executor)?,
            sampler: Sampler::keeping(device, options.max_seqs, plans.clone()),
            kv,
            vocabulary: prepared.model.vocab_size,
            chunk: options.chunk.max(options.max_seqs) as usize,
            seqs: options.max_seqs as usize,
            caches: HashMap::new(),
            bytes: prepared.bytes,
        };
        Ok((draft, told))
    }

    /// Width of its logits.
    pub(crate) fn vocabulary(&self) -> u32 {
        self.vocabulary
    }

    /// Memory it takes.
    pub(crate) fn bytes(&self) -> LoadBytes {
        self.bytes
    }

    /// Whether it has read anything of a sequence.
    pub(crate) fn knows(&self, seq: SeqId) -> bool {
        self.caches.contains_key(&seq)
    }

    /// Tokens of a sequence that it would have to read by itself before it guesses.
    pub(crate) fn backlog(&self, seq: SeqId, tokens: &[u32]) -> usize {
        let read = self.caches.get(&seq).map_or(0, |known| agreeing(&known.computed, tokens));
        let unread = tokens.len() - read;
        if unread > READ_ALONG { unread } else { 0 }
    }

    /// Forgets a sequence.
    pub(crate) fn forget(&mut self, seq: SeqId) {
        if let Some(mut known) = self.caches.remove(&seq) {
            self.kv.close(&mut known.cache);
        }
    }

    /// Reads what is unread of `jobs` so far that little is left for the guessing step.
    pub(crate) fn read(&mut self, jobs: &[DraftJob<'_>]) -> Result<(), EngineError> {
        let vocabulary = self.vocabulary;
        for job in jobs.iter().filter(|job| job.tokens.iter().all(|&token| token < vocabulary)) {
            let mut known = self.take(job);
            let last = job.tokens.len() - 1;
            while last - known.cache.len() >= READ_ALONG {
                let start = known.cache.len();
                let upto = last.min(start + self.chunk);
                if self.kv.reserve(&mut known.cache, upto).is_err() {
                    break;
                }
                let entry = self.entry(job, &known, start, &job.tokens[start..upto], false);
                self.runner.run(&Batch { step: 0, entries: vec![entry] }, |_| job.whole)?;
                self.kv.advance(&mut known.cache, job.tokens, upto);
                known.computed = job.tokens[..upto].to_vec();
            }
            self.caches.insert(job.seq, known);
        }
        Ok(())
    }

    /// Guesses the tokens that follow each of `jobs`; fewer than wanted, or none, where it cannot.
    pub(crate) fn draft(&mut self, jobs: &[DraftJob<'_>]) -> Result<Vec<Vec<u32>>, EngineError> {
        let mut drafts = vec![Vec::new(); jobs.len()];
        for (first, some) in jobs.chunks(self.seqs.min(self.chunk / READ_ALONG).max(1)).enumerate() {
            let at = first * self.seqs.min(self.chunk / READ_ALONG).max(1);
            self.draft_together(some, &mut drafts[at..at + some.len()])?;
        }
        Ok(drafts)
    }

    /// [`DraftModel::draft`] for as many sequences as one step takes.
    fn draft_together(&mut self, jobs: &[DraftJob<'_>], drafts: &mut [Vec<u32>]) -> Result<(), EngineError> {
        let mut known: Vec<Option<DraftSeqCache>> = jobs.iter().map(|job| self.begin(job)).collect();
        let mut counts: Vec<TokenCounts> = jobs.iter().map(|job| job.counts.clone()).collect();
        for step in 0.. {
            let wants = |i: usize| known[i].is_some() && jobs[i].length > step && drafts[i].len() == step;
            let who: Vec<usize> = (0..jobs.len()).filter(|&i| wants(i)).collect();
            if who.is_empty() {
                break;
            }
            let mut entries = Vec::with_capacity(who.len());
            for &i in &who {
                let Some(known) = &mut known[i] else { continue };
                let (start, tokens) = match drafts[i].last() {
                    None => (known.cache.len(), jobs[i].tokens[known.cache.len()..].to_vec()),
                    Some(&last) => (known.computed.len(), vec![last]),
                };
                known.computed.truncate(start);
                known.computed.extend(&tokens);
                entries.push(self.entry(&jobs[i], known, start, &tokens, true));
            }
            for (&i, token) in who.iter().zip(self.sample(jobs, &who, entries, &counts)?) {
                if let Some(token) = token {
                    drafts[i].push(token);
                    counts[i].push(token);
                }
            }
        }
        for (job, known) in jobs.iter().zip(known) {
            self.caches.extend(known.map(|known| (job.seq, known)));
        }
        Ok(())
    }

    /// Runs `entries`, one for each of `who`, and samples with the random numbers that the model will use.
    fn sample(
        &mut self,
        jobs: &[DraftJob<'_>],
        who: &[usize],
        entries: Vec<BatchEntry>,
        counts: &[TokenCounts],
    ) -> Result<Vec<Option<u32>>, EngineError> {
        let batch = Batch { step: 0, entries };
        let whole = |seq| jobs.iter().find(|job| job.seq == seq).map_or(0, |job| job.whole);
        self.runner.run(&batch, whole)?;
        let pick = |(row, (entry, &i)): (usize, (&BatchEntry, &usize))| SamplerInput {
            row,
            params: jobs[i].params,
            counts: &counts[i],
            allowed: None,
            position: entry.start + entry.tokens.len() as u32,
        };
        let picks: Vec<SamplerInput<'_>> = batch.entries.iter().zip(who).enumerate().map(pick).collect();
        let sampled = self.sampler.sample_all(self.runner.all_logits()?, self.vocabulary as usize, &picks)?;
        // A row that gives no token gives no guess.
        let usable =
            |token: &u32, i: usize| *token < self.vocabulary && (*token as usize) < jobs[i].params.vocabulary();
        let each = sampled.into_iter().zip(who);
        Ok(each.map(|(s, &i)| s.ok().map(|s| s.token).filter(|token| usable(token, i))).collect())
    }

    /// The state of a sequence with room for its guesses; none if it cannot be guessed.
    fn begin(&mut self, job: &DraftJob<'_>) -> Option<DraftSeqCache> {
        if job.tokens.iter().any(|&token| token >= self.vocabulary) {
            return None;
        }
        let mut known = self.take(job);
        let upto = job.tokens.len() + job.length - 1;
        if job.tokens.len() - known.cache.len() > READ_ALONG || self.kv.reserve(&mut known.cache, upto).is_err() {
            self.kv.close(&mut known.cache);
            return None;
        }
        Some(known)
    }

    /// Takes the state of a sequence out, with what its guesses have become: the cache's length is that of the tokens
    /// computed rightly, and at least one token is left to compute.
    fn take(&mut self, job: &DraftJob<'_>) -> DraftSeqCache {
        let mut known = self.caches.remove(&job.seq).unwrap_or_else(|| {
            let cache = self.kv.open(job.tokens, job.salt, usize::MAX);
            DraftSeqCache { computed: job.tokens[..cache.len()].to_vec(), cache }
        });
        let right = agreeing(&known.computed, job.tokens).min(job.tokens.len() - 1);
        known.computed.truncate(right);
        self.kv.advance(&mut known.cache, job.tokens, right);
        self.kv.roll_back(&mut known.cache);
        known
    }

    fn entry(
        &self,
        job: &DraftJob<'_>,
        known: &DraftSeqCache,
        start: usize,
        tokens: &[u32],
        sample: bool,
    ) -> BatchEntry {
        let groups = self.kv.groups().len();
        let slot = |group: usize, position: usize| {
            known.cache.slot(group, position).expect("positions were reserved before an entry is made of them")
        };
        let upto = start + tokens.len();
        BatchEntry {
            seq: job.seq,
            phase: Phase::Decode,
            tokens: tokens.to_vec(),
            drafts: 0,
            start: start as u32,
            slots: (0..groups).map(|group| (start..upto).map(|at| slot(group, at)).collect()).collect(),
            tables: (0..groups).map(|group| known.cache.table(group).to_vec()).collect(),
            rows: if sample { vec![tokens.len() as u32 - 1] } else { Vec::new() },
            sample,
        }
    }
}

/// Tokens at the beginning that are equal.
fn agreeing(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
