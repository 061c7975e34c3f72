//! A compiled kernel, and the way to the end of all its requests: the engine's steps, written into the metadata.
//!
//! It knows no op. What runs next is the engine's decision.

use crate::builder::KernelBuilder;
use crate::config::{KernelConfig, KernelMode, PromptLookup};
use crate::declaration::KernelDeclaration;
use crate::emit::{EmittedGraph, GraphPurpose};
use crate::error::PersistentError;
use crate::limits::MAX_PLAN_BYTES;
use crate::meta::MetaTensors;
use crate::notice::{KernelNotice, Notices};
use crate::sampling_mode::SamplingMode;
use crate::saved::{SavedKernel, plans_folder};
use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::Arc;
use yirage_engine::kv::KvManager;
use yirage_engine::sampling::SamplingParams;
use yirage_engine::scheduler::{FinishReason, SeqId};
use yirage_engine::{
    CacheSize, Engine, EngineOptions, Event, GraphModel, PlanCounts, Request, Speculation, SpeculationControl,
};
use yirage_hal::{Device, Profile, Profiler};
use yirage_ir::Dim;
use yirage_model::arch::{Model, ModelOutput, StepGraph};
use yirage_plancache::PlanFolder;

/// A kernel that runs.
pub struct PersistentKernel {
    config: KernelConfig,
    meta: MetaTensors,
    notices: Notices,
    engine: Engine,
    profiler: Option<Arc<Profiler>>,
    sampling: SamplingParams,
    /// Tokens that have rows in the embedding.
    tokens: u32,
    /// The row of each request that runs.
    running: HashMap<SeqId, usize>,
    /// Rows that are still to be run, in order.
    waiting: VecDeque<usize>,
    saved: SavedKernel,
}

/// A request that ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EndedRequest {
    /// Its row of the metadata.
    pub row: usize,
    /// `eos` or `length`.
    pub reason: &'static str,
    /// Tokens that were generated for it.
    pub new_tokens: usize,
    /// Guesses of it that were verified.
    pub drafted: usize,
    /// Of those, the ones that were right.
    pub accepted: usize,
}

/// What a call did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CallReport {
    /// Whether every request has ended.
    pub finished: bool,
    /// Steps that ran.
    pub steps: u64,
    /// Tokens that they computed: prompts, new ones and guesses.
    pub tokens_run: u64,
    /// Tokens that came out.
    pub new_tokens: u64,
    /// Guesses that were verified.
    pub drafted: u64,
    /// Of those, the ones that were right.
    pub accepted: u64,
    /// Requests that ended, in order.
    pub ended: Vec<EndedRequest>,
}

/// The model of the layers, and what is kept to save it.
pub(crate) struct KernelModel {
    pub(crate) model: GraphModel,
    pub(crate) saved: SavedKernel,
}

impl KernelBuilder {
    /// Compiles the layers for a device and loads their weights. With a folder the kernel is saved there: what it is, and
    /// its plans, which the next compilation or [`PersistentKernel::load`] proves instead of compiling.
    ///
    /// # Errors
    /// Layers that are no model of a step, what the compiler and the device say, and files that cannot be written.
    pub fn compile(&self, device: Arc<dyn Device>, folder: Option<&Path>) -> Result<PersistentKernel, PersistentError> {
        let emitted = self.emit(GraphPurpose::Steps, &*device)?;
        let parts = parts(self, emitted, &*device)?;
        if let Some(folder) = folder {
            parts.saved.write(folder)?;
        }
        let mut notices = self.notices.clone();
        notices.tell(KernelNotice::Caches);
        PersistentKernel::start(self.declared.clone(), notices, parts, device, folder)
    }
}

/// Layers as a model that an engine runs.
fn parts(builder: &KernelBuilder, emitted: EmittedGraph, device: &dyn Device) -> Result<KernelModel, PersistentError> {
    let EmittedGraph { mut step, origins, weights, embedded, logits, choice, lookup, .. } = emitted;
    let unsupported = |what: &str, why: &str| PersistentError::Unsupported { what: what.into(), why: why.into() };
    let (Some(logits), Some(choice)) = (logits, choice) else {
        let why = "end them with argmax_layer, argmax_reduce_layer or sampling_layer, or run them in test mode";
        return Err(unsupported("a kernel whose layers choose no token", why));
    };
    let Some((table, rows)) = embedded else {
        return Err(unsupported("a kernel without embed_layer", "its tokens would decide nothing"));
    };
    if step.groups.is_empty() {
        return Err(unsupported("a kernel without attention", "nothing of earlier tokens would be known"));
    }
    step.graph.outputs.push(logits);
    let vocabulary = match step.graph.ty(logits).shape.last() {
        Some(Dim::Const(n)) => *n,
        _ => 0,
    };
    if rows < vocabulary {
        let why = format!("it has {rows} rows, and tokens up to {vocabulary} can be chosen: as many are wanted");
        return Err(PersistentError::Tensor { name: table, why });
    }
    let saved = SavedKernel::new(&builder.declared, &step, origins, (choice, lookup), device)?;
    let given = GraphModel { model: model(step, vocabulary, &builder.declared.config), weights };
    Ok(KernelModel { model: given, saved })
}

/// The engine's view of a graph of layers.
pub(crate) fn model(step: StepGraph, vocab_size: u32, config: &KernelConfig) -> Model {
    let StepGraph { graph, groups, kv_cache_group } = step;
    Model {
        name: "kernel".into(),
        graph,
        output: ModelOutput::Logits,
        token_types: 0,
        embedded: None,
        weights: Vec::new(),
        groups,
        kv_cache_group,
        dynamic_rope: None,
        biased_keys: false,
        vocab_size,
        context: config.max_seq_length,
    }
}

impl PersistentKernel {
    pub(crate) fn start(
        declared: KernelDeclaration,
        mut notices: Notices,
        parts: KernelModel,
        device: Arc<dyn Device>,
        folder: Option<&Path>,
    ) -> Result<PersistentKernel, PersistentError> {
        let KernelDeclaration { config, meta, .. } = declared;
        let has = device.target().queues();
        if let Some(asked) = config.num_workers.filter(|&asked| asked != has) {
            notices.tell(KernelNotice::Workers { asked, has });
        }
        // Asked for before the first plan is loaded, of which it then keeps the times.
        let profiler = config.profiler_spans.map(|spans| device.profile(spans)).transpose()?;
        let KernelModel { model: given, saved } = parts;
        let lookup = config.spec_decode.or(saved.lookup());
        let options = options(&config, lookup, folder.map(|at| PlanFolder::new(plans_folder(at), MAX_PLAN_BYTES)));
        if let Some(lookup) = lookup {
            let wanted = config.max_num_batched_requests.saturating_mul(1 + lookup.spec_length);
            if wanted > config.max_num_batched_tokens {
                notices.tell(KernelNotice::FewDrafts { tokens: config.max_num_batched_tokens, wanted });
            }
        }
        let sampling = match saved.choice() {
            SamplingMode::Greedy => SamplingParams::greedy(),
            SamplingMode::Sampled(params) => params.clone(),
        };
        let tokens = given.model.vocab_size;
        let engine = Engine::load_graph_model(&given, device, &options, &mut |_, _| {})?;
        let waiting = (0..meta.requests()).collect();
        Ok(PersistentKernel {
            config,
            meta,
            notices,
            engine,
            profiler,
            sampling,
            tokens,
            running: HashMap::new(),
            waiting,
            saved,
        })
    }

    /// Runs until every request has ended, or so many steps have run. A request is a row of the metadata that has room
    /// behind its known tokens; each runs once, until [`PersistentKernel::load_new_request`] or
    /// [`PersistentKernel::set_meta`] give it other tokens. Rows are admitted in order as slots become free.
    ///
    /// Tokens are written as they come. A step that verified several guesses may have tokens left, which the next call
    /// writes first.
    ///
    /// # Errors
    /// [`PersistentError::Request`] for a row that cannot run or whose step failed.
    pub fn call(&mut self, max_steps: Option<u64>) -> Result<CallReport, PersistentError> {
        self.call_watched(max_steps, &mut |_| true)
    }

    /// [`PersistentKernel::call`] that shows the metadata behind each step, and ends where it is when `watch` says no. The
    /// next call goes on from there.
    ///
    /// # Errors
    /// As [`PersistentKernel::call`].
    pub fn call_watched(
        &mut self,
        max_steps: Option<u64>,
        watch: &mut dyn FnMut(&MetaTensors) -> bool,
    ) -> Result<CallReport, PersistentError> {
        let bound = match (self.config.mode, max_steps) {
            (KernelMode::OnePass, None) => Some(1),
            (_, bound) => bound,
        };
        let before = self.engine.stats();
        let mut report = CallReport::default();
        loop {
            self.admit()?;
            if self.running.is_empty() {
                report.finished = true;
                break;
            }
            if bound.is_some_and(|most| self.engine.stats().steps - before.steps >= most) {
                break;
            }
            // Every event is written down, also beside one that says that a request failed.
            let taken: Vec<_> = self.engine.step()?.into_iter().map(|event| self.take(event, &mut report)).collect();
            taken.into_iter().collect::<Result<(), _>>()?;
            if !watch(&self.meta) {
                break;
            }
        }
        let after = self.engine.stats();
        report.steps = after.steps - before.steps;
        report.tokens_run = after.tokens_run - before.tokens_run;
        report.drafted = after.drafted - before.drafted;
        report.accepted = after.accepted - before.accepted;
        for notice in self.engine.notices() {
            self.notices.tell(KernelNotice::Plan(notice.to_string()));
        }
        Ok(report)
    }

    /// Gives rows that wait to the engine, as long as it has less than twice its slots.
    fn admit(&mut self) -> Result<(), PersistentError> {
        let most = self.config.max_num_batched_requests as usize * 2;
        while self.running.len() < most {
            let Some(row) = self.waiting.pop_front() else { break };
            let known = self.meta.known(row)?;
            let room = (self.config.max_seq_length as usize).saturating_sub(known.len());
            if room == 0 {
                continue;
            }
            let tokens = u64::from(self.tokens);
            let prompt = known.iter().enumerate().map(|(at, &id)| match u32::try_from(id) {
                Ok(id) if u64::from(id) < tokens => Ok(id),
                _ => {
                    let why = format!("token {id} at position {at}: there are {tokens}, counted from 0");
                    Err(PersistentError::Request { row, why })
                }
            });
            let prompt = prompt.collect::<Result<Vec<u32>, _>>()?;
            // Requests of one seed draw numbers of their own.
            let sampling = SamplingParams { choice: row as u32, ..self.sampling.clone() };
            let request = Request {
                sampling,
                stop_ids: self.config.eos_token_id.into_iter().collect(),
                ..Request::greedy(prompt, room as u32)
            };
            let refused = |e: yirage_engine::EngineError| PersistentError::Request { row, why: e.to_string() };
            let seq = self.engine.add(request).map_err(refused)?;
            self.running.insert(seq, row);
        }
        Ok(())
    }

    fn take(&mut self, event: Event, report: &mut CallReport) -> Result<(), PersistentError> {
        match event {
            Event::Token { seq, token, position, .. } => {
                let Some(&row) = self.running.get(&seq) else { return Ok(()) };
                self.meta.write(row, position, token)?;
                report.new_tokens += 1;
                Ok(())
            }
            Event::Finished { seq, reason, usage, .. } => {
                let Some(row) = self.running.remove(&seq) else { return Ok(()) };
                let reason = match reason {
                    FinishReason::StopId(_) => "eos",
                    FinishReason::Length => "length",
                    FinishReason::Error(why) => return Err(PersistentError::Request { row, why }),
                    other => {
                        let why = format!("it ended by {other:?}, which nobody asked for");
                        return Err(PersistentError::Request { row, why });
                    }
                };
                let (new_tokens, drafted, accepted) = (usage.new_tokens, usage.drafted, usage.accepted);
                report.ended.push(EndedRequest { row, reason, new_tokens, drafted, accepted });
                Ok(())
            }
            Event::Logits { .. } | Event::Hidden { .. } | Event::PromptLogprobs { .. } | Event::RopeScaled { .. } => {
                Ok(())
            }
        }
    }

    /// The metadata as it is now.
    pub fn meta(&self) -> &MetaTensors {
        &self.meta
    }

    /// Gives a row a new prompt; it runs with the next call, behind those that wait.
    ///
    /// # Errors
    /// [`PersistentError::Request`] for a row that runs, and as [`MetaTensors::set_prompt`].
    pub fn load_new_request(&mut self, row: usize, prompt: &[i64]) -> Result<(), PersistentError> {
        self.check_idle(row)?;
        self.meta.set_prompt(row, prompt)?;
        self.queue(row);
        Ok(())
    }

    /// Takes the metadata as its owner has it now: rows with other tokens than here are new requests.
    ///
    /// # Errors
    /// [`PersistentError::Meta`] for another number or length of rows, [`PersistentError::Request`] for a change of a row
    /// that runs.
    pub fn set_meta(&mut self, meta: MetaTensors) -> Result<(), PersistentError> {
        let sizes = |meta: &MetaTensors| [meta.requests(), meta.max_seq_length()];
        if sizes(&meta) != sizes(&self.meta) {
            let why = format!("it is {:?}, and was {:?} when the kernel was built", sizes(&meta), sizes(&self.meta));
            return Err(PersistentError::Meta { name: "tokens".into(), why });
        }
        let mut changed = Vec::new();
        for row in 0..meta.requests() {
            if meta.known(row)? != self.meta.known(row)? {
                self.check_idle(row)?;
                changed.push(row);
            }
        }
        self.meta = meta;
        changed.into_iter().for_each(|row| self.queue(row));
        Ok(())
    }

    fn queue(&mut self, row: usize) {
        if !self.waiting.contains(&row) {
            self.waiting.push_back(row);
        }
    }

    fn check_idle(&self, row: usize) -> Result<(), PersistentError> {
        if self.running.values().any(|&running| running == row) {
            return Err(PersistentError::Request { row, why: "it runs: call the kernel until it has ended".into() });
        }
        Ok(())
    }

    /// The times of tasks so far, by worker; none where `profiler_spans` asked for none.
    pub fn profile(&self) -> Option<Profile> {
        self.profiler.as_ref().map(|profiler| profiler.profile())
    }

    /// What was asked for and means something else here, since the last call.
    pub fn notices(&mut self) -> Vec<KernelNotice> {
        self.notices.take()
    }

    /// The cache's bookkeeping.
    pub fn kv(&self) -> &KvManager {
        self.engine.kv()
    }

    /// Where its plans came from.
    pub fn plan_counts(&self) -> PlanCounts {
        self.engine.plan_counts()
    }

    /// Writes what it is into a folder, from which [`PersistentKernel::load`] makes it again. Plans are written there by a
    /// compilation that is given the folder.
    ///
    /// # Errors
    /// [`PersistentError::Write`].
    pub fn save(&self, folder: &Path) -> Result<(), PersistentError> {
        self.saved.write(folder)
    }
}

fn options(config: &KernelConfig, lookup: Option<PromptLookup>, plans: Option<PlanFolder>) -> EngineOptions {
    let slots = config.max_num_batched_requests;
    let drafts = lookup.map_or(0, |lookup| lookup.spec_length);
    let cache = match config.max_num_pages {
        // Checked with the options: the product is a number of blocks.
        Some(pages) => CacheSize::Blocks(pages.saturating_mul(config.page_size / yirage_engine::limits::BLOCK as u32)),
        None => CacheSize::Sequences(slots),
    };
    EngineOptions {
        precision: config.precision,
        executor: config.executor,
        context: Some(config.max_seq_length),
        max_seqs: slots,
        cache,
        chunk: config.max_num_batched_tokens,
        logit_rows: slots.saturating_mul(1 + drafts).min(config.max_num_batched_tokens).max(slots),
        speculation: Speculation {
            most: drafts,
            lookup: lookup.is_some(),
            ngram: lookup.map_or(0, |lookup| lookup.ngram_size),
            mtp: false,
            control: SpeculationControl::Most,
        },
        plans,
        ..EngineOptions::default()
    }
}
