//! The engine: requests in, tokens out, one step after another.

use crate::error::EngineError;
use crate::kv::KvManager;
use crate::load::{self, Progress};
use crate::memory::LoadBytes;
use crate::options::EngineOptions;
use crate::packed::{Background, Notice, Packed};
use crate::runner::Runner;
use crate::sampling::{CheckedParams, Logprobs, Pick, SampleError, Sampled, Sampler, SamplingParams, TokenCounts};
use crate::scheduler::{
    self, Batch, Config, Ended, Entry, FinishReason, LogitsWanted, Outcome, Phase, Scheduler, SeqId, Stats, StepResult,
    Usage,
};
use crate::speculate::{DraftModel, Speculator, StepCost, View, VocabularyError, same_vocabulary};
use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use yirage_hal::{Device, MemoryReport, Why};
use yirage_ir::{Dims, Format};
use yirage_model::Checkpoint;
use yirage_model::rope::Dynamic;
use yirage_model::tokenizer::Tokenizer;
use yirage_packed::Entry as KeptEntry;
use yirage_plan::work::{Costs, Span, Work};
use yirage_plan::{ExecutorKind, WeightPlan};

/// A request for tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Token ids of the prompt, at least one.
    pub prompt: Vec<u32>,
    /// New tokens at most; none is as many as fit.
    pub max_new_tokens: Option<u32>,
    /// Tokens that end the sequence; the one that did is reported as its last.
    pub stop_ids: Vec<u32>,
    /// How tokens are chosen.
    pub sampling: SamplingParams,
    /// Whose logits are reported as [`Event::Logits`]; none reports none.
    pub logits: Option<LogitsWanted>,
}

impl Request {
    /// Greedy tokens after `prompt`.
    pub fn greedy(prompt: Vec<u32>, max_new_tokens: u32) -> Request {
        Request {
            prompt,
            max_new_tokens: Some(max_new_tokens),
            stop_ids: Vec::new(),
            sampling: SamplingParams::greedy(),
            logits: None,
        }
    }
}

/// What a step made known.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Logits of a position, for requests that want them.
    Logits {
        /// The sequence.
        seq: SeqId,
        /// The position whose successor they predict.
        position: usize,
        /// One a token of the vocabulary.
        logits: Vec<f32>,
    },
    /// The hidden state of a position, after the final norm, where the engine was told to report them: of every position
    /// whose logits were computed.
    Hidden {
        /// The sequence.
        seq: SeqId,
        /// The position.
        position: usize,
        /// One a dimension of the model.
        state: Vec<f32>,
    },
    /// A new token.
    Token {
        /// The sequence.
        seq: SeqId,
        /// Its id.
        token: u32,
        /// Its position, counted from the prompt's beginning.
        position: usize,
        /// Log-probabilities, if asked for.
        logprobs: Option<Logprobs>,
    },
    /// The model's rotary embedding has the dynamic scaling, and this sequence will exceed what the model was made for:
    /// its frequencies are those of its whole length.
    RopeScaled {
        /// The sequence.
        seq: SeqId,
        /// Positions it will have when it is whole.
        length: u32,
        /// Positions the model was made for.
        original: u32,
    },
    /// A sequence ended.
    Finished {
        /// The sequence.
        seq: SeqId,
        /// Why.
        reason: FinishReason,
        /// Its counts.
        usage: Usage,
        /// By how much guessing is estimated to have made its tokens faster than one by one, from measured times; none
        /// where guessing is off or nothing was decoded.
        gain: Option<f64>,
    },
}

/// What a loaded model is.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFacts {
    /// The architecture.
    pub architecture: String,
    /// Width of the logits.
    pub vocabulary: u32,
    /// Positions a sequence may have here.
    pub context: u32,
    /// Positions the model was made for.
    pub trained_context: u32,
    /// Whether sequences longer than that are computed with a rotary embedding scaled for them.
    pub dynamic_rope: bool,
    /// Format of cached keys and values.
    pub kv: Format,
    /// Whether keys are cached with biases added, so that Q8_0 keeps them less exactly than those of other models.
    pub biased_keys: bool,
    /// Memory predicted before the load.
    pub bytes: LoadBytes,
    /// The entry that repacked weights were mapped from; none where they were made from the model's files.
    pub packed_weights: Option<PathBuf>,
}

/// What the engine keeps of a sequence beside the scheduler.
struct Sequence {
    sampling: CheckedParams,
    counts: TokenCounts,
    /// Whether logits are reported.
    logits: bool,
    /// Positions that will be computed if it is not stopped early.
    length: u32,
    /// Distinguishes cached beginnings.
    salt: Vec<u8>,
    /// What belongs to the verified tokens that the scheduler has not delivered yet.
    ready: VecDeque<Ready>,
}

/// What belongs to a token of a verified run.
struct Ready {
    /// Its row of the last step.
    row: usize,
    /// The position of that row.
    position: usize,
    logprobs: Option<Logprobs>,
}

/// An engine: one model on one device.
///
/// [`Engine::add`] queues requests, [`Engine::step`] runs one step and reports what became known. Output does not
/// depend on what else runs: the same request gives the same tokens alone, in any batch, with any chunk size, with and
/// without guesses.
pub struct Engine {
    facts: ModelFacts,
    device: Arc<dyn Device>,
    weights: WeightPlan,
    costs: Costs,
    scheduler: Scheduler,
    runner: Runner,
    sampler: Sampler,
    sequences: HashMap<SeqId, Sequence>,
    dynamic_rope: Option<Dynamic>,
    /// Events that wait for the next step.
    known: Vec<Event>,
    hidden: bool,
    speculator: Speculator,
    options: EngineOptions,
    /// The entry that repacked weights are mapped from.
    kept: Option<KeptEntry>,
    /// Repacked weights that are written once the first step is over.
    background: Option<Background>,
}

impl Engine {
    /// Loads the model of `checkpoint` on `device`. What it takes is checked before anything is loaded.
    ///
    /// # Errors
    /// [`EngineError::WouldNotFit`] with the numbers; and whatever is wrong with files, options or the device.
    pub fn load(
        checkpoint: &Checkpoint,
        device: Arc<dyn Device>,
        options: &EngineOptions,
        progress: Progress,
    ) -> Result<Engine, EngineError> {
        let prepared = load::prepare(checkpoint, &*device, options)?;
        let kv = KvManager::new(&prepared.groups, options.prefix_cache)?;
        let chunk = options.chunk.max(options.max_seqs);
        let scheduler = Scheduler::new(
            Config {
                max_seqs: options.max_seqs,
                token_budget: chunk,
                max_rows: options.logit_rows.max(options.max_seqs),
                prefill_chunk: chunk,
                max_prefills: options.max_seqs,
                max_context: prepared.context,
                ..Config::default()
            },
            kv,
        )?;
        let mut packed = options.packed.as_ref().and_then(|o| Packed::find(o, checkpoint, &device, &prepared));
        let (adopted, kept) = packed.as_mut().and_then(|packed| packed.adopt(progress)).unzip();
        let bindings = load::bind(checkpoint, &*device, &prepared, adopted.unwrap_or_default(), progress)?;
        let packed_weights = kept.as_ref().map(|entry| entry.path().to_path_buf());
        let background = packed.map(|packed| packed.background(kept.is_some(), &bindings));
        let vocabulary = prepared.model.vocab_size;
        let groups = prepared.groups.len();
        let dynamic_rope = prepared.model.dynamic_rope;
        let runner = Runner::new(&*device, &prepared.plans, &bindings, groups, dynamic_rope.clone(), options.executor)?;
        let facts = ModelFacts {
            architecture: prepared.model.name,
            vocabulary,
            context: prepared.context,
            trained_context: prepared.model.context,
            dynamic_rope: dynamic_rope.is_some(),
            kv: prepared.kv,
            biased_keys: prepared.model.biased_keys,
            bytes: prepared.bytes,
            packed_weights,
        };
        let mut sampler = Sampler::new(device.clone(), options.logit_rows.max(options.max_seqs));
        sampler.prepare(vocabulary as usize)?;
        Ok(Engine {
            facts,
            device,
            weights: prepared.weights,
            costs: prepared.costs,
            scheduler,
            runner,
            sampler,
            sequences: HashMap::new(),
            dynamic_rope,
            known: Vec::new(),
            hidden: options.hidden,
            speculator: Speculator::new(options.speculation),
            options: options.clone(),
            kept,
            background,
        })
    }

    /// Loads a smaller model of the same vocabulary, whose guesses are verified from now on. `tokenizers` are the model's
    /// and the draft model's, where both have one.
    ///
    /// # Errors
    /// [`EngineError::Vocabulary`] with the first token that differs; and as [`Engine::load`].
    pub fn load_draft(
        &mut self,
        checkpoint: &Checkpoint,
        tokenizers: Option<(&Tokenizer, &Tokenizer)>,
        progress: Progress,
    ) -> Result<(), EngineError> {
        if let Some((model, draft)) = tokenizers {
            same_vocabulary(model, draft)?;
        }
        let options = EngineOptions { context: Some(self.facts.context), ..self.options.clone() };
        let draft = DraftModel::load(checkpoint, self.device.clone(), &options, progress)?;
        let (model, width) = (self.facts.vocabulary, draft.vocabulary());
        if tokenizers.is_none() && model != width {
            return Err(VocabularyError::Width { model, draft: width }.into());
        }
        let share = draft.bytes().weights as f64 / self.facts.bytes.weights.max(1) as f64;
        self.speculator.set_model(draft, share);
        Ok(())
    }

    /// Memory that the draft model takes, where there is one.
    pub fn draft_bytes(&self) -> Option<LoadBytes> {
        self.speculator.model().map(DraftModel::bytes)
    }

    /// What was loaded.
    pub fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    /// For each plan: the sizes of the largest step it takes, its executor now, and why it is that one.
    pub fn executors(&self) -> Vec<(Dims, ExecutorKind, Why)> {
        self.runner.executors()
    }

    /// What became known of the repacked weights since the last call.
    pub fn notices(&mut self) -> Vec<Notice> {
        self.background.as_ref().map_or_else(Vec::new, Background::notices)
    }

    /// Finishes writing the repacked weights for the next start, if that was begun or is still to do; what this meets is
    /// among the [`Engine::notices`]. An engine dropped without this leaves them unwritten, unless that was done by
    /// itself beside the steps. `progress` gets the bytes written, and of all.
    pub fn settle(&mut self, progress: Progress) {
        if let Some(background) = &mut self.background {
            background.settle(progress);
        }
    }

    /// Memory the device holds.
    pub fn memory(&self) -> MemoryReport {
        self.device.memory()
    }

    /// How weights are held.
    pub fn weight_plan(&self) -> &WeightPlan {
        &self.weights
    }

    /// What a step over these sequences has to read and compute at least.
    pub fn work(&self, spans: &[Span]) -> Work {
        self.costs.step(spans)
    }

    /// Counters of the scheduler.
    pub fn stats(&self) -> Stats {
        self.scheduler.stats()
    }

    /// What decoding steps of each size took so far, where tokens are guessed: the cost of verifying.
    pub fn step_costs(&self) -> Vec<StepCost> {
        self.speculator.measured()
    }

    /// Queues a request.
    ///
    /// # Errors
    /// [`EngineError::UnknownToken`], [`EngineError::Sampling`], [`EngineError::Admission`].
    pub fn add(&mut self, request: Request) -> Result<SeqId, EngineError> {
        let vocabulary = self.facts.vocabulary;
        if let Some(at) = request.prompt.iter().position(|&id| id >= vocabulary) {
            return Err(EngineError::UnknownToken { id: request.prompt[at], at, vocabulary });
        }
        let sampling = request.sampling.checked(vocabulary as usize)?;
        let counts = TokenCounts::new(&request.prompt);
        let length = self.whole_length(request.prompt.len(), request.max_new_tokens);
        let scaled = self.dynamic_rope.as_ref().filter(|d| length > d.original).map(|d| d.original);
        // Keys that were rotated for another length are not this sequence's.
        let salt = scaled.map_or_else(Vec::new, |_| length.to_le_bytes().to_vec());
        let prompt = request.prompt.clone();
        let seq = self.scheduler.add(scheduler::Request {
            prompt: request.prompt,
            max_new_tokens: request.max_new_tokens,
            stop_ids: request.stop_ids,
            logits: request.logits.unwrap_or_default(),
            cache_salt: salt.clone(),
        })?;
        self.speculator.add(seq, &prompt);
        self.known.extend(scaled.map(|original| Event::RopeScaled { seq, length, original }));
        let (logits, ready) = (request.logits.is_some(), VecDeque::new());
        self.sequences.insert(seq, Sequence { sampling, counts, logits, length, salt, ready });
        Ok(seq)
    }

    /// Positions that a request computes if nothing stops it early: its last token is not computed any more.
    fn whole_length(&self, prompt: usize, max_new_tokens: Option<u32>) -> u32 {
        let new = max_new_tokens.map_or(u64::MAX, u64::from).max(1);
        (prompt as u64).saturating_add(new - 1).min(u64::from(self.facts.context)) as u32
    }

    /// Ends a sequence now; its end is reported here or, if it is being computed, by the next step.
    pub fn finish(&mut self, seq: SeqId, reason: FinishReason) -> Option<Event> {
        match self.scheduler.finish(seq, reason) {
            Ended::Now(event) => Some(self.report(event)),
            Ended::AtCommit | Ended::Unknown => None,
        }
    }

    /// Whether nothing waits or runs.
    pub fn is_idle(&self) -> bool {
        self.scheduler.is_idle()
    }

    /// Runs one step. A request can fail; the engine goes on.
    ///
    /// Where the last step verified several tokens of a sequence, the next of them is reported instead, one a call, and
    /// nothing is computed: whoever ends a sequence after a token has not been told of any behind it, and neither is
    /// anything of them kept.
    ///
    /// # Errors
    /// Only the engine's own mistakes; a failing device ends the step's sequences with [`FinishReason::Error`].
    pub fn step(&mut self) -> Result<Vec<Event>, EngineError> {
        if self.scheduler.has_ready() {
            return self.deliver();
        }
        let guessed = self.propose();
        let batch = self.scheduler.schedule()?;
        let mut events = std::mem::take(&mut self.known);
        if batch.entries.is_empty() {
            return Ok(events);
        }
        let started = Instant::now();
        let length = |seq| self.sequences.get(&seq).map_or(0, |s| s.length);
        let ran = guessed.and_then(|()| self.runner.run(&batch, length)).map_err(|e| e.to_string());
        let sampled = ran.and_then(|()| self.sample(&batch).map_err(|e| e.to_string()));
        let sampled = match self.confirm_weights().and(sampled) {
            Ok(sampled) => sampled,
            Err(why) => {
                events.extend(self.fail_step(&why));
                return Ok(events);
            }
        };
        let seconds = started.elapsed().as_secs_f64();
        let mut sampled = sampled.into_iter();
        let mut results = Vec::with_capacity(batch.entries.len());
        let mut logprobs = HashMap::new();
        let mut first_row = 0;
        for entry in &batch.entries {
            self.report_rows(entry, first_row, &mut events)?;
            let rows = if self.samples(entry) { 1 + entry.drafts as usize } else { 0 };
            let rows: Vec<_> = sampled.by_ref().take(rows).collect();
            let outcome = match verify(entry.drafted(), rows) {
                Err(why) => Outcome::Failed(why),
                Ok(run) if run.is_empty() && entry.sample => Outcome::Failed("the engine lost the sequence".into()),
                Ok(run) if run.is_empty() => Outcome::Ran,
                Ok(run) => self.keep(entry, first_row, run, &mut logprobs),
            };
            first_row += entry.rows.len();
            results.push(StepResult { seq: entry.seq, outcome });
        }
        self.measured(&batch, &results, seconds);
        for event in self.scheduler.commit(&results)? {
            let mut event = self.report(event);
            if let Event::Token { seq, logprobs: of, .. } = &mut event {
                *of = logprobs.remove(seq);
            }
            events.push(event);
        }
        if let Some(background) = &mut self.background {
            background.start();
        }
        Ok(events)
    }

    /// Whether the step that ran computed with the weights of the model: those that are mapped can go or change under
    /// it. What it computed is then of no use, whatever came of it.
    fn confirm_weights(&mut self) -> Result<(), String> {
        let confirmed = self.kept.as_mut().map_or(Ok(()), KeptEntry::confirm);
        confirmed.map_err(|e| format!("repacked weights in use are gone or changed, start again: {e}"))
    }

    /// Offers guesses for the next step to the scheduler.
    fn propose(&mut self) -> Result<(), EngineError> {
        if self.speculator.is_off() {
            return Ok(());
        }
        let view = |seq: SeqId| {
            let of = self.sequences.get(&seq)?;
            let (params, counts, whole, salt) = (&of.sampling, &of.counts, of.length, &of.salt[..]);
            Some(View { seq, room: self.scheduler.draft_room(seq), params, counts, whole, salt })
        };
        let views: Vec<View<'_>> = self.scheduler.decoding().filter_map(view).collect();
        let drafts = self.speculator.propose(&views, self.scheduler.has_prompts())?;
        drafts.into_iter().for_each(|(seq, drafts)| self.scheduler.propose(seq, drafts));
        Ok(())
    }

    /// Keeps what belongs to a run's tokens: of the first for this step's events, of the others until they are delivered.
    fn keep(
        &mut self,
        entry: &Entry,
        first_row: usize,
        run: Vec<Sampled>,
        logprobs: &mut HashMap<SeqId, Logprobs>,
    ) -> Outcome {
        let tokens: Vec<u32> = run.iter().map(|sampled| sampled.token).collect();
        self.speculator.verified(entry.seq, entry.drafts as usize, tokens.len() - 1);
        let certain = entry.certain().len();
        let first_row = first_row + entry.rows.len() - entry.drafts as usize - 1;
        let mut run = run.into_iter().enumerate();
        logprobs.extend(run.next().and_then(|(_, first)| first.logprobs).map(|of| (entry.seq, of)));
        let ready = run.map(|(at, sampled)| Ready {
            row: first_row + at,
            position: entry.start as usize + certain - 1 + at,
            logprobs: sampled.logprobs,
        });
        if let Some(sequence) = self.sequences.get_mut(&entry.seq) {
            sequence.ready = ready.collect();
        }
        Outcome::Run(tokens)
    }

    /// Tells the speculator what a step of decoding sequences took.
    fn measured(&mut self, batch: &Batch, results: &[StepResult], seconds: f64) {
        if batch.entries.iter().any(|entry| entry.phase != Phase::Decode) {
            return;
        }
        let tokens = |result: &StepResult| if let Outcome::Run(run) = &result.outcome { run.len() as u32 } else { 0 };
        let of = |(entry, result): (&Entry, &StepResult)| (entry.seq, entry.tokens.len() as u32, tokens(result));
        let seqs: Vec<_> = batch.entries.iter().zip(results).map(of).collect();
        self.speculator.ran(&seqs, seconds);
    }

    /// Reports the next token of each verified run.
    fn deliver(&mut self) -> Result<Vec<Event>, EngineError> {
        let mut events = std::mem::take(&mut self.known);
        for event in self.scheduler.deliver() {
            let ready = match event {
                scheduler::Event::Token { seq, .. } => self.sequences.get_mut(&seq).and_then(|s| s.ready.pop_front()),
                scheduler::Event::Finished { .. } => None,
            };
            let mut event = self.report(event);
            if let (Event::Token { seq, logprobs, .. }, Some(ready)) = (&mut event, ready) {
                self.report_row(*seq, ready.position, ready.row, &mut events)?;
                *logprobs = ready.logprobs;
            }
            events.push(event);
        }
        Ok(events)
    }

    /// Logits and hidden states of the entry's rows, as far as they are wanted; those of drafts wait until they are
    /// delivered.
    fn report_rows(&self, entry: &Entry, first_row: usize, events: &mut Vec<Event>) -> Result<(), EngineError> {
        let certain = entry.rows.len() - entry.drafts as usize;
        let mut rows = entry.rows[..certain].iter().enumerate();
        rows.try_for_each(|(i, &r)| self.report_row(entry.seq, (entry.start + r) as usize, first_row + i, events))
    }

    /// Logits and hidden state of one row of the last step, as far as they are wanted.
    fn report_row(&self, seq: SeqId, position: usize, row: usize, events: &mut Vec<Event>) -> Result<(), EngineError> {
        if self.sequences.get(&seq).is_some_and(|s| s.logits) {
            events.push(Event::Logits { seq, position, logits: self.runner.logits(row)?.to_vec() });
        }
        if self.hidden {
            events.push(Event::Hidden { seq, position, state: self.runner.hidden(row)?.to_vec() });
        }
        Ok(())
    }

    /// Whether the entry's sequence gets a token: it is wanted, and the engine still has the sequence.
    fn samples(&self, entry: &Entry) -> bool {
        entry.sample && self.sequences.contains_key(&entry.seq)
    }

    /// One result for each row of each entry that [`Engine::samples`]: of its last certain token and of its drafts, each
    /// with the history that the drafts before it make.
    fn sample(&mut self, batch: &Batch) -> Result<Vec<Result<Sampled, SampleError>>, SampleError> {
        let histories = self.histories(batch);
        let mut histories = histories.iter();
        let mut picks = Vec::with_capacity(batch.rows());
        let mut rows = 0;
        for entry in &batch.entries {
            rows += entry.rows.len();
            let Some(seq) = self.sequences.get(&entry.seq).filter(|_| entry.sample) else { continue };
            let (params, drafts) = (&seq.sampling, entry.drafts as usize);
            for at in 0..=drafts {
                let with_drafts = if at > 0 && params.has_penalties() { histories.next() } else { None };
                let counts = with_drafts.unwrap_or(&seq.counts);
                let position = entry.start + (entry.certain().len() + at) as u32;
                picks.push(Pick { row: rows - 1 - drafts + at, params, counts, allowed: None, position });
            }
        }
        self.sampler.sample_all(self.runner.all_logits(), self.facts.vocabulary as usize, &picks)
    }

    /// For entries whose sampling looks at the history: that of each draft's row, the draft included.
    fn histories(&self, batch: &Batch) -> Vec<TokenCounts> {
        let mut histories = Vec::new();
        for entry in &batch.entries {
            let seq = self.sequences.get(&entry.seq).filter(|seq| entry.sample && seq.sampling.has_penalties());
            let Some(mut counts) = seq.map(|seq| seq.counts.clone()) else { continue };
            for &draft in entry.drafted() {
                counts.push(draft);
                histories.push(counts.clone());
            }
        }
        histories
    }

    fn fail_step(&mut self, why: &str) -> Vec<Event> {
        let ended = self.scheduler.fail_step(why);
        ended.into_iter().map(|e| self.report(e)).collect()
    }

    /// The engine's event for one of the scheduler's; ended sequences are forgotten.
    fn report(&mut self, event: scheduler::Event) -> Event {
        match event {
            scheduler::Event::Token { seq, token, position } => {
                if let Some(s) = self.sequences.get_mut(&seq) {
                    s.counts.push(token);
                }
                self.speculator.push(seq, token);
                Event::Token { seq, token, position, logprobs: None }
            }
            scheduler::Event::Finished { seq, reason, usage } => {
                self.sequences.remove(&seq);
                let gain = self.speculator.remove(seq);
                Event::Finished { seq, reason, usage, gain }
            }
        }
    }
}

/// The tokens that a step gives a sequence: sampled ones in order, up to the first that is not the draft at its place. A
/// row that gives no token ends the run before it; the next step computes it again, and fails if it is the first.
fn verify(drafts: &[u32], sampled: Vec<Result<Sampled, SampleError>>) -> Result<Vec<Sampled>, String> {
    let mut run = Vec::new();
    for (at, sampled) in sampled.into_iter().enumerate() {
        match sampled {
            Err(why) if at == 0 => return Err(why.to_string()),
            Err(_) => break,
            Ok(sampled) => {
                let accepted = drafts.get(at) == Some(&sampled.token);
                run.push(sampled);
                if !accepted {
                    break;
                }
            }
        }
    }
    Ok(run)
}
