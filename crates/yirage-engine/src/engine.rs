//! The engine: requests in, tokens out, one step after another.

use crate::error::EngineError;
use crate::kv::KvManager;
use crate::load::{self, LoadBytes, Progress};
use crate::options::EngineOptions;
use crate::packed::{Background, Notice, Packed};
use crate::runner::Runner;
use crate::sampling::{CheckedParams, Logprobs, Pick, SampleError, Sampled, Sampler, SamplingParams, TokenCounts};
use crate::scheduler::{
    self, Batch, Config, Ended, Entry, FinishReason, LogitsWanted, Outcome, Scheduler, SeqId, Stats, StepResult, Usage,
};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use yirage_hal::{Device, MemoryReport, Why};
use yirage_ir::{Dims, Format};
use yirage_model::Checkpoint;
use yirage_model::rope::Dynamic;
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
}

/// An engine: one model on one device.
///
/// [`Engine::add`] queues requests, [`Engine::step`] runs one step and reports what became known. Output does not
/// depend on what else runs: the same request gives the same tokens alone, in any batch, with any chunk size.
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
    /// Work on repacked weights that waits for the first step.
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
        let (adopted, entry) = packed.as_mut().and_then(Packed::adopt).unzip();
        let bindings = load::bind(checkpoint, &*device, &prepared, adopted.unwrap_or_default(), progress)?;
        let packed_weights = entry.as_ref().map(|entry| entry.path().to_path_buf());
        let background = packed.map(|packed| packed.background(entry, &bindings));
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
            bytes: prepared.bytes,
            packed_weights,
        };
        let mut sampler = Sampler::new(device.clone(), options.max_seqs);
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
            background,
        })
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
        let seq = self.scheduler.add(scheduler::Request {
            prompt: request.prompt,
            max_new_tokens: request.max_new_tokens,
            stop_ids: request.stop_ids,
            logits: request.logits.unwrap_or_default(),
            // Keys that were rotated for another length are not this sequence's.
            cache_salt: scaled.map_or_else(Vec::new, |_| length.to_le_bytes().to_vec()),
        })?;
        self.known.extend(scaled.map(|original| Event::RopeScaled { seq, length, original }));
        self.sequences.insert(seq, Sequence { sampling, counts, logits: request.logits.is_some(), length });
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
    /// # Errors
    /// Only the engine's own mistakes; a failing device ends the step's sequences with [`FinishReason::Error`].
    pub fn step(&mut self) -> Result<Vec<Event>, EngineError> {
        let batch = self.scheduler.schedule()?;
        let mut events = std::mem::take(&mut self.known);
        if batch.entries.is_empty() {
            return Ok(events);
        }
        let length = |seq| self.sequences.get(&seq).map_or(0, |s| s.length);
        let ran = self.runner.run(&batch, length).map_err(|e| e.to_string());
        let mut sampled = match ran.and_then(|()| self.sample(&batch).map_err(|e| e.to_string())) {
            Ok(sampled) => sampled.into_iter(),
            Err(why) => {
                events.extend(self.fail_step(&why));
                return Ok(events);
            }
        };
        let mut logprobs = HashMap::new();
        let mut results = Vec::with_capacity(batch.entries.len());
        let mut row = 0;
        for entry in &batch.entries {
            self.report_rows(entry, row, &mut events)?;
            row += entry.rows.len();
            let outcome = match if self.samples(entry) { sampled.next() } else { None } {
                None if entry.sample => Outcome::Failed("the engine lost the sequence".into()),
                None => Outcome::Ran,
                Some(Err(e)) => Outcome::Failed(e.to_string()),
                Some(Ok(Sampled { token, logprobs: of })) => {
                    logprobs.extend(of.map(|of| (entry.seq, of)));
                    Outcome::Token(token)
                }
            };
            results.push(StepResult { seq: entry.seq, outcome });
        }
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

    /// Logits and hidden states of the entry's rows, as far as they are wanted.
    fn report_rows(&self, entry: &Entry, first_row: usize, events: &mut Vec<Event>) -> Result<(), EngineError> {
        let wanted = self.sequences.get(&entry.seq).is_some_and(|s| s.logits);
        for (i, &r) in entry.rows.iter().enumerate() {
            let (seq, position) = (entry.seq, (entry.start + r) as usize);
            if wanted {
                events.push(Event::Logits { seq, position, logits: self.runner.logits(first_row + i)?.to_vec() });
            }
            if self.hidden {
                events.push(Event::Hidden { seq, position, state: self.runner.hidden(first_row + i)?.to_vec() });
            }
        }
        Ok(())
    }

    /// Whether the entry's sequence gets a token: it is wanted, and the engine still has the sequence.
    fn samples(&self, entry: &Entry) -> bool {
        entry.sample && self.sequences.contains_key(&entry.seq)
    }

    /// One result for each entry that [`Engine::samples`].
    fn sample(&mut self, batch: &Batch) -> Result<Vec<Result<Sampled, SampleError>>, SampleError> {
        let mut picks = Vec::with_capacity(batch.entries.len());
        let mut rows = 0;
        for entry in &batch.entries {
            rows += entry.rows.len();
            let Some(seq) = self.sequences.get(&entry.seq).filter(|_| entry.sample) else { continue };
            let (params, counts, salt) = (&seq.sampling, &seq.counts, entry.seq.0);
            let position = entry.start + entry.tokens.len() as u32;
            picks.push(Pick { row: rows - 1, params, counts, allowed: None, salt, position });
        }
        self.sampler.sample_all(self.runner.all_logits(), self.facts.vocabulary as usize, &picks)
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
                Event::Token { seq, token, position, logprobs: None }
            }
            scheduler::Event::Finished { seq, reason, usage } => {
                self.sequences.remove(&seq);
                Event::Finished { seq, reason, usage }
            }
        }
    }
}
