//! A model that guesses what the model will say: a smaller one, or the MTP head of the model's checkpoint.
//!
//! It keeps a cache of its own for each sequence. Before it guesses it reads what it has not read; what it computed for
//! guesses that came true stays, the rest is written over. Positions of guesses are never counted as computed, so that
//! sliding windows keep what going back needs.
//!
//! An MTP head reads a token beside the model's hidden state of the position before it, so its first token is a sequence's
//! second. The states come from the model's steps, and wait until they are read. Where those of a beginning never come,
//! since the model found it in its cache, the head begins behind it, unless it finds that beginning in its own: rotations
//! depend on differences of positions alone. For guesses the head's own state takes the place of the model's, so what it
//! computed for them does not stay.
//!
//! It deliberately knows nothing of the verifying model but its tokens and states, and never makes room at anybody's cost:
//! a sequence for which its cache has no block gets no guesses.

use super::hidden_rows::HiddenRows;
use super::recurrent::cannot_guess;
use crate::block_positions::block_positions;
use crate::error::EngineError;
use crate::kv::{KvManager, SeqCache};
use crate::limits::READ_ALONG;
use crate::load::{self, LoadProgressFn, ModelLoadPlan};
use crate::loaded_stage::{LoadedStage, loaded_stages};
use crate::memory::LoadBytes;
use crate::options::{CacheSize, EngineOptions, Speculation};
use crate::packed::Notice;
use crate::plans::PlanProvider;
use crate::runner::{HIDDEN, Runner, RunnerInputs};
use crate::sampling::{CheckedParams, Sampler, SamplerInput, TokenCounts};
use crate::scheduler::{Batch, BatchEntry, Phase, SeqId};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use yirage_hal::{Bindings, Device, HalError, WeightHandle};
use yirage_ir::Format;
use yirage_model::Checkpoint;
use yirage_plan::WeightPlan;

/// A sequence as a draft model sees it.
#[derive(Clone, Copy)]
pub(crate) struct DraftSequence<'a> {
    pub(crate) seq: SeqId,
    /// All its tokens.
    pub(crate) tokens: &'a [u32],
    /// Positions it will have when it is whole.
    pub(crate) whole: u32,
    /// Distinguishes cached beginnings.
    pub(crate) salt: &'a [u8],
}

/// A sequence that wants guesses.
pub(crate) struct DraftJob<'a> {
    pub(crate) of: DraftSequence<'a>,
    /// Guesses wanted, at least one.
    pub(crate) length: usize,
    pub(crate) params: &'a CheckedParams,
    pub(crate) counts: &'a TokenCounts,
}

/// What the draft model has of a sequence.
struct DraftSeqCache {
    cache: SeqCache,
    /// Tokens of the sequence before the first that it reads. Its places are counted from there.
    lead: usize,
    /// The tokens whose keys and values were computed; those behind the cache's length were guesses.
    computed: Vec<u32>,
    /// Of an MTP head the hidden states before the tokens that are not computed, and before some that are.
    hidden: Option<HiddenRows>,
}

impl DraftSeqCache {
    /// Of the sequence's tokens those that it reads, as far as it can.
    fn readable<'t>(&self, tokens: &'t [u32]) -> &'t [u32] {
        let own = &tokens[self.lead..];
        &own[..self.hidden.as_ref().map_or(own.len(), |rows| rows.end().min(own.len()))]
    }
}

/// The model whose MTP head is loaded.
pub(crate) struct LoadedModel<'a> {
    pub(crate) checkpoint: &'a Checkpoint,
    pub(crate) weights: &'a WeightPlan,
    pub(crate) bindings: &'a Bindings,
    /// Positions a sequence may have.
    pub(crate) context: u32,
    /// The format of its cache.
    pub(crate) kv: Format,
}

/// The step of a draft model that gives each of some sequences a guess.
#[derive(Default)]
struct DraftStep {
    /// Which of the jobs.
    jobs: Vec<usize>,
    entries: Vec<BatchEntry>,
    /// The positions of the guesses.
    positions: Vec<u32>,
    previous_hidden: Vec<f32>,
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
    /// Of an MTP head the width of a hidden state.
    hidden: Option<usize>,
    caches: HashMap<SeqId, DraftSeqCache>,
    bytes: LoadBytes,
    /// Bytes of the weights that its steps read, those that it has from the model among them.
    read_bytes: u64,
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
        let options = drafting(options, CacheSize::Sequences(sequences));
        let prepared = load::prepare(checkpoint, &*device, &options, plans)?;
        if prepared.groups.iter().any(|config| config.group.is_recurrent()) {
            return Err(cannot_guess("a draft model", &prepared.model.name));
        }
        let bindings = load::bind(checkpoint, &*device, &prepared, &HashMap::new(), progress)?;
        DraftModel::assemble(prepared, bindings, device, &options, plans)
    }

    /// Loads the MTP head of the checkpoint of `model`, as [`DraftModel::load`]. It takes the weights from the model that
    /// both have.
    pub(crate) fn load_mtp_head(
        model: &LoadedModel<'_>,
        device: Arc<dyn Device>,
        (options, sequences): (&EngineOptions, u32),
        plans: &PlanProvider,
        progress: LoadProgressFn,
    ) -> Result<(DraftModel, Vec<Notice>), EngineError> {
        let options = drafting(options, CacheSize::Sequences(sequences));
        let held = &model.weights.entries;
        let sizes = (&options, model.context, model.kv);
        let prepared = load::prepare_mtp_head(model.checkpoint, &*device, sizes, held, plans)?;
        let entries = prepared.stages.iter().flat_map(|stage| &stage.weights.entries);
        let both = entries.filter(|entry| held.contains(entry));
        let handle = |name: &String| Some((name.clone(), model.bindings.weights.get(name)?.clone()));
        let shared: HashMap<String, WeightHandle> = both.filter_map(|entry| handle(&entry.name)).collect();
        let bindings = load::bind(model.checkpoint, &*device, &prepared, &shared, progress)?;
        DraftModel::assemble(prepared, bindings, device, &options, plans)
    }

    fn assemble(
        prepared: ModelLoadPlan,
        bindings: Vec<Bindings>,
        device: Arc<dyn Device>,
        options: &EngineOptions,
        plans: &PlanProvider,
    ) -> Result<(DraftModel, Vec<Notice>), EngineError> {
        let block = block_positions(&prepared.model);
        let kv = KvManager::new(&prepared.groups, options.prefix_cache)?.with_block_positions(block);
        let hidden = prepared.model.previous_hidden().map(|width| width as usize);
        let inputs = RunnerInputs {
            groups: prepared.groups.len(),
            dynamic_rope: prepared.model.dynamic_rope.clone(),
            embedded: prepared.model.embedded,
            block,
            scales: 0,
            previous_hidden: hidden.is_some(),
        };
        let entries = prepared.stages.iter().flat_map(|stage| &stage.weights.entries);
        let read_bytes = entries.map(|entry| device.weight_bytes(entry)).sum::<Result<u64, HalError>>()?;
        let mut told = Vec::new();
        let (stages, _) = loaded_stages(&*device, prepared.stages, bindings, options, &mut told)?;
        let draft = DraftModel {
            runner: Runner::new(&LoadedStage::runner_stages(&stages, &*device), inputs, options.executor)?,
            sampler: Sampler::keeping(device, options.max_seqs, plans.clone()),
            kv,
            vocabulary: prepared.model.vocab_size,
            chunk: options.chunk.max(options.max_seqs) as usize,
            seqs: options.max_seqs as usize,
            hidden,
            caches: HashMap::new(),
            bytes: prepared.bytes,
            read_bytes,
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

    /// Bytes of the weights that its steps read.
    pub(crate) fn read_bytes(&self) -> u64 {
        self.read_bytes
    }

    /// Whether it is an MTP head, which reads the model's hidden states.
    pub(crate) fn reads_hidden(&self) -> bool {
        self.hidden.is_some()
    }

    /// Whether it has read anything of a sequence.
    pub(crate) fn knows(&self, seq: SeqId) -> bool {
        self.caches.get(&seq).is_some_and(|known| !known.computed.is_empty())
    }

    /// Whether it has what it needs to guess what follows the sequence: an MTP head the state before its last token.
    pub(crate) fn can_draft(&self, of: DraftSequence<'_>) -> bool {
        let whole = |known: &DraftSeqCache| known.readable(of.tokens).len() + known.lead == of.tokens.len();
        self.hidden.is_none() || self.caches.get(&of.seq).is_some_and(whole)
    }

    /// Whether hidden states of a sequence wait to be read that are too many for a step that guesses.
    pub(crate) fn has_waiting(&self, seq: SeqId) -> bool {
        let waiting = |known: &DraftSeqCache| {
            known.hidden.as_ref().map_or(0, HiddenRows::end).saturating_sub(known.computed.len())
        };
        self.caches.get(&seq).is_some_and(|known| waiting(known) > READ_ALONG)
    }

    /// Tokens of a sequence that it would have to read by itself before it guesses.
    pub(crate) fn backlog(&self, seq: SeqId, tokens: &[u32]) -> usize {
        let unread = |known: &DraftSeqCache| {
            let own = known.readable(tokens);
            own.len() - agreeing(&known.computed, own)
        };
        let unread = self.caches.get(&seq).map_or(tokens.len(), unread);
        if unread > READ_ALONG { unread } else { 0 }
    }

    /// Forgets a sequence.
    pub(crate) fn forget(&mut self, seq: SeqId) {
        if let Some(mut known) = self.caches.remove(&seq) {
            self.kv.close(&mut known.cache);
        }
    }

    /// Takes the hidden states of a sequence's positions from `start` on, which are the rows `tokens` of `all`.
    pub(crate) fn observe_hidden(&mut self, of: DraftSequence<'_>, start: usize, tokens: Range<usize>, all: &[f32]) {
        let Some(width) = self.hidden else { return };
        let rows = &all[tokens.start * width..tokens.end * width];
        let end = start + tokens.len();
        if let Some(known) = self.caches.get_mut(&of.seq) {
            // The first token that is read stands behind the first state.
            let first = known.lead - 1;
            let new = rows.get(first.saturating_sub(start) * width..).filter(|_| end > first);
            let (Some(new), Some(hidden)) = (new, &mut known.hidden) else { return };
            let at = start.saturating_sub(first);
            if at <= hidden.end() {
                return hidden.push(at, new);
            }
            // States between were never computed.
            self.forget(of.seq);
        }
        let known = self.begin_at(of, start, HiddenRows::new(width, 0, rows));
        self.caches.insert(of.seq, known);
    }

    /// What an MTP head has of a sequence of which the states from position `start` on are the first: the beginning where
    /// its cache has it, else nothing before `start`.
    fn begin_at(&mut self, of: DraftSequence<'_>, start: usize, hidden: HiddenRows) -> DraftSeqCache {
        let mut known = self.open(of, 1);
        if known.computed.len() < start {
            self.kv.close(&mut known.cache);
            return DraftSeqCache { hidden: Some(hidden), ..self.open(of, start + 1) };
        }
        DraftSeqCache { hidden: Some(hidden.moved_to(start)), ..known }
    }

    /// A sequence without its first `lead` tokens, with what the cache has of it.
    fn open(&mut self, of: DraftSequence<'_>, lead: usize) -> DraftSeqCache {
        let own = &of.tokens[lead..];
        let cache = match lead {
            0 => self.kv.open(own, of.salt, usize::MAX),
            // States depend on all tokens before them.
            lead => self.kv.open(own, &salt_behind(&of.tokens[..lead], of.salt), usize::MAX),
        };
        DraftSeqCache { computed: own[..cache.len()].to_vec(), cache, lead, hidden: None }
    }

    /// Reads what is unread of `sequences` so far that little is left for the guessing step.
    pub(crate) fn read(&mut self, sequences: &[DraftSequence<'_>]) -> Result<(), EngineError> {
        let vocabulary = self.vocabulary;
        for &of in sequences.iter().filter(|of| of.tokens.iter().all(|&token| token < vocabulary)) {
            let Some(mut known) = self.take(of) else { continue };
            let own = known.readable(of.tokens);
            let (last, mut room) = (own.len().saturating_sub(1), true);
            while last.saturating_sub(known.cache.len()) >= READ_ALONG {
                let start = known.cache.len();
                let upto = last.min(start + self.chunk);
                room = self.kv.reserve(&mut known.cache, upto).is_ok();
                if !room {
                    break;
                }
                let entry = self.entry(of.seq, &known, start, &own[start..upto], false);
                let batch = Batch { step: 0, entries: vec![entry] };
                self.runner.run(&batch, |_| of.whole, hidden_before(&known, start, upto), &[])?;
                self.kv.advance(&mut known.cache, own, upto);
                known.computed = own[..upto].to_vec();
                if let Some(hidden) = &mut known.hidden {
                    hidden.forget_before(upto);
                }
            }
            if room || self.hidden.is_none() {
                self.caches.insert(of.seq, known);
            } else {
                // States for which there is no room would pile up.
                self.kv.close(&mut known.cache);
            }
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
        // The state before the next token, of an MTP head.
        let mut carried: Vec<Vec<f32>> = vec![Vec::new(); jobs.len()];
        for at in 0.. {
            let mut step = DraftStep::default();
            for (i, known) in known.iter_mut().enumerate() {
                let Some(known) = known.as_mut().filter(|_| jobs[i].length > at && drafts[i].len() == at) else {
                    continue;
                };
                let own = &jobs[i].of.tokens[known.lead..];
                let (start, tokens, hidden) = match drafts[i].last() {
                    None => {
                        let start = known.cache.len();
                        known.computed = own.to_vec();
                        (start, own[start..].to_vec(), hidden_before(known, start, own.len()))
                    }
                    Some(&last) => {
                        if self.hidden.is_none() {
                            known.computed.push(last);
                        }
                        (own.len() + at - 1, vec![last], std::mem::take(&mut carried[i]))
                    }
                };
                step.positions.push((known.lead + start + tokens.len()) as u32);
                step.previous_hidden.extend(hidden);
                step.entries.push(self.entry(jobs[i].of.seq, known, start, &tokens, true));
                step.jobs.push(i);
            }
            if step.jobs.is_empty() {
                break;
            }
            let who = step.jobs.clone();
            let sampled = self.sample(jobs, step, &counts)?;
            for (row, (i, token)) in who.into_iter().zip(sampled).enumerate() {
                if let Some(token) = token {
                    drafts[i].push(token);
                    counts[i].push(token);
                }
                if self.hidden.is_some() {
                    carried[i] = self.runner.hidden(row)?.to_vec();
                }
            }
        }
        for (job, known) in jobs.iter().zip(known) {
            self.caches.extend(known.map(|known| (job.of.seq, known)));
        }
        Ok(())
    }

    /// Runs a step and samples with the random numbers that the model will use.
    fn sample(
        &mut self,
        jobs: &[DraftJob<'_>],
        step: DraftStep,
        counts: &[TokenCounts],
    ) -> Result<Vec<Option<u32>>, EngineError> {
        let DraftStep { jobs: who, entries, positions, previous_hidden } = step;
        let batch = Batch { step: 0, entries };
        let whole = |seq| jobs.iter().find(|job| job.of.seq == seq).map_or(0, |job| job.of.whole);
        let reads: &[usize] = if self.hidden.is_some() { &[HIDDEN] } else { &[] };
        self.runner.run(&batch, whole, previous_hidden, reads)?;
        let pick = |(row, (&i, &position)): (usize, (&usize, &u32))| SamplerInput {
            row,
            params: jobs[i].params,
            counts: &counts[i],
            allowed: None,
            position,
        };
        let picks: Vec<SamplerInput<'_>> = who.iter().zip(&positions).enumerate().map(pick).collect();
        let sampled = self.sampler.sample_all(self.runner.all_logits()?, self.vocabulary as usize, &picks)?;
        // A row that gives no token gives no guess.
        let usable =
            |token: &u32, i: usize| *token < self.vocabulary && (*token as usize) < jobs[i].params.vocabulary();
        let each = sampled.into_iter().zip(who);
        Ok(each.map(|(s, i)| s.ok().map(|s| s.token).filter(|token| usable(token, i))).collect())
    }

    /// The state of a sequence with room for its guesses; none if it cannot be guessed.
    fn begin(&mut self, job: &DraftJob<'_>) -> Option<DraftSeqCache> {
        if !self.can_draft(job.of) || job.of.tokens.iter().any(|&token| token >= self.vocabulary) {
            return None;
        }
        let mut known = self.take(job.of)?;
        let own = job.of.tokens.len() - known.lead;
        let upto = own + job.length - 1;
        if own - known.cache.len() > READ_ALONG || self.kv.reserve(&mut known.cache, upto).is_err() {
            self.kv.close(&mut known.cache);
            return None;
        }
        Some(known)
    }

    /// Takes the state of a sequence out, with what its guesses have become: the cache's length is that of the tokens
    /// computed rightly, and at least one token is left to compute. None of a sequence whose hidden states an MTP head has
    /// not seen.
    fn take(&mut self, of: DraftSequence<'_>) -> Option<DraftSeqCache> {
        let known = self.caches.remove(&of.seq);
        let mut known = known.or_else(|| self.hidden.is_none().then(|| self.open(of, 0)))?;
        let own = &of.tokens[known.lead..];
        let right = agreeing(&known.computed, own).min(own.len().saturating_sub(1));
        known.computed.truncate(right);
        self.kv.advance(&mut known.cache, own, right);
        self.kv.roll_back(&mut known.cache);
        if let Some(hidden) = &mut known.hidden {
            hidden.forget_before(right);
        }
        Some(known)
    }

    fn entry(&self, seq: SeqId, known: &DraftSeqCache, start: usize, tokens: &[u32], sample: bool) -> BatchEntry {
        let groups = self.kv.groups().len();
        let slot = |group: usize, position: usize| {
            known.cache.slot(group, position).expect("positions were reserved before an entry is made of them")
        };
        let upto = start + tokens.len();
        BatchEntry {
            seq,
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

/// The options of a model that guesses for one with these, with such a cache.
fn drafting(options: &EngineOptions, cache: CacheSize) -> EngineOptions {
    EngineOptions {
        hidden: false,
        logit_rows: options.max_seqs,
        speculation: Speculation::default(),
        cache,
        adapters: Vec::new(),
        ..options.clone()
    }
}

/// The hidden states before the tokens of the places `from` to `to`; nothing where none are read.
fn hidden_before(known: &DraftSeqCache, from: usize, to: usize) -> Vec<f32> {
    let rows = |hidden: &HiddenRows| hidden.get(from, to).expect("states stay until their tokens are read").to_vec();
    known.hidden.as_ref().map_or_else(Vec::new, rows)
}

/// What distinguishes the cached beginnings behind these tokens, of sequences of `salt`.
fn salt_behind(tokens: &[u32], salt: &[u8]) -> Vec<u8> {
    let count = (tokens.len() as u64).to_le_bytes();
    count.into_iter().chain(tokens.iter().flat_map(|token| token.to_le_bytes())).chain(salt.iter().copied()).collect()
}

/// Tokens at the beginning that are equal.
fn agreeing(a: &[u32], b: &[u32]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}
