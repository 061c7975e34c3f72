//! From a checkpoint to an engine.

use super::adapters::layout;
use super::bound_kv_cache::BoundKvCache;
use super::core::Engine;
use super::facts::ModelFacts;
use crate::block_positions::block_positions;
use crate::embedded::EmbeddedTokens;
use crate::error::EngineError;
use crate::graph_model::GraphModel;
use crate::kv::KvManager;
use crate::load::{self, LoadProgressFn, ModelLoadPlan, kv_cache_type};
use crate::loaded_stage::{LoadedStage, loaded_stages};
use crate::options::{CacheSize, EngineOptions, Speculation};
use crate::pace::{PromptWork, StepPacer};
use crate::packed::{Notice, PackedModelEntry};
use crate::plans::PlanProvider;
use crate::prefix_error::PrefixError;
use crate::runner::{Runner, RunnerInputs};
use crate::sampling::Sampler;
use crate::scheduler::{Scheduler, SchedulerConfig};
use crate::speculate::{DraftModel, LoadedModel, NO_WAY_BACK, Speculator, cannot_guess};
use crate::vocabulary::{VocabularyError, same_vocabulary};
use std::collections::HashMap;
use std::sync::Arc;
use yirage_hal::{Bindings, Device};
use yirage_ir::Dims;
use yirage_model::arch::{KvCacheSpec, Model, mtp_layer};
use yirage_model::rope::Dynamic;
use yirage_model::tokenizer::Tokenizer;
use yirage_model::{Checkpoint, RawConfig};

impl Engine {
    /// Loads the model of `checkpoint` on `device`. What it takes is checked before anything is loaded.
    ///
    /// # Errors
    /// [`EngineError::WouldNotFit`] with the numbers; and whatever is wrong with files, options or the device.
    pub fn load(
        checkpoint: &Checkpoint,
        device: Arc<dyn Device>,
        options: &EngineOptions,
        progress: LoadProgressFn,
    ) -> Result<Engine, EngineError> {
        let plans = PlanProvider::new(options.plans.clone());
        let config = RawConfig::load(checkpoint)?;
        let mtp_layer = mtp_layer(checkpoint, &config)?;
        if options.speculation.wants_mtp_head() && mtp_layer.is_none() {
            return Err(no_mtp_head(checkpoint, &*device, options));
        }
        let prepared = load::prepare(checkpoint, &*device, options, &plans)?;
        let scheduler = scheduler(&prepared, options)?;
        // What stages of their own devices have is not kept: a pipeline has no images.
        let mut packed = match (&options.packed, &prepared.stages[..]) {
            (Some(packed), [whole]) => PackedModelEntry::find(packed, checkpoint, &device, whole),
            _ => None,
        };
        let (adopted, kept) = packed.as_mut().and_then(|packed| packed.adopt(progress)).unzip();
        let bindings = load::bind(checkpoint, &*device, &prepared, &adopted.unwrap_or_default(), progress)?;
        let background = packed.zip(bindings.first()).map(|(packed, whole)| packed.background(kept.is_some(), whole));
        let mut engine = Engine::assemble(prepared, bindings, scheduler, device, options, plans)?;
        engine.facts.packed_weights = kept.as_ref().map(|entry| entry.path().to_path_buf());
        (engine.packed_entry, engine.background) = (kept, background);
        engine.notices.extend(Notice::of_weights(checkpoint));
        engine.notices.extend(Notice::of_context(&config));
        if options.speculation.wants_mtp_head() {
            engine.load_mtp_head(checkpoint, progress)?;
        } else if options.speculation.most > 0 {
            engine.notices.extend(mtp_layer.map(Notice::MtpHeadUnused));
        }
        Ok(engine)
    }

    /// Loads a model that is given as a graph on `device`. What it takes is checked before anything is loaded. Its cache
    /// has the format of the graph's states, whatever [`EngineOptions::kv`] says, and its weights are not kept on disk.
    ///
    /// # Errors
    /// [`EngineError::GraphModel`] for a graph that an engine cannot run; else as [`Engine::load`].
    pub fn load_graph_model(
        given: &GraphModel,
        device: Arc<dyn Device>,
        options: &EngineOptions,
        progress: LoadProgressFn,
    ) -> Result<Engine, EngineError> {
        if options.hidden {
            return Err(EngineError::GraphModel(
                "hidden states are asked for, and its one output is its logits".into(),
            ));
        }
        if options.speculation.wants_mtp_head() {
            return Err(EngineError::GraphModel("an MTP head is asked for, and it is of a checkpoint".into()));
        }
        let plans = PlanProvider::new(options.plans.clone());
        let prepared = load::prepare_graph_model(given, &*device, options, &plans)?;
        let scheduler = scheduler(&prepared, options)?;
        let bindings = load::bind_graph_model(given, &*device, &prepared, progress)?;
        Engine::assemble(prepared, bindings, scheduler, device, options, plans)
    }

    fn assemble(
        prepared: ModelLoadPlan,
        bindings: Vec<Bindings>,
        scheduler: Scheduler,
        device: Arc<dyn Device>,
        options: &EngineOptions,
        plans: PlanProvider,
    ) -> Result<Engine, EngineError> {
        let vocabulary = prepared.model.vocab_size;
        let (groups, embedded_width) = (prepared.groups.len(), prepared.model.embedded);
        let dynamic_rope = prepared.model.dynamic_rope.clone();
        let mut told = Vec::new();
        let recurrent = prepared.groups.iter().any(|config| config.group.is_recurrent());
        let guesses = !recurrent || options.speculation.most == 0;
        told.extend((!guesses).then(|| Notice::NotGuessed(NO_WAY_BACK.into())));
        let speculation = if guesses { options.speculation } else { Speculation::default() };
        let (stages, variant) = loaded_stages(&*device, prepared.stages, bindings, options, &mut told)?;
        let inputs = RunnerInputs {
            groups,
            dynamic_rope: dynamic_rope.clone(),
            embedded: embedded_width,
            block: block_positions(&prepared.model),
            scales: layout(&options.adapters).width() as usize,
            previous_hidden: false,
        };
        let runner = Runner::new(&LoadedStage::runner_stages(&stages, &*device), inputs, options.executor)?;
        let kv_caches = kv_caches(&prepared.model, &stages)?;
        let facts = ModelFacts {
            architecture: prepared.model.name,
            vocabulary,
            context: prepared.context,
            trained_context: prepared.model.context,
            dynamic_rope: dynamic_rope.as_ref().is_some_and(Dynamic::is_beyond_training),
            kv: prepared.kv,
            biased_keys: prepared.model.biased_keys,
            recurrent,
            bytes: prepared.bytes,
            packed_weights: None,
            variant,
        };
        let seqs = options.logit_rows.max(options.max_seqs);
        let mut sampler = Sampler::keeping(device.clone(), seqs, plans);
        sampler.prepare(vocabulary as usize)?;
        let work = || PromptWork::new(&prepared.costs, prepared.context);
        let pace = options.max_step.map(|most| StepPacer::new(most, work()));
        Ok(Engine {
            facts,
            device,
            stages,
            costs: prepared.costs,
            scheduler,
            runner,
            kv_caches,
            sampler,
            requests: HashMap::new(),
            embedded: EmbeddedTokens::default(),
            embedded_width,
            dynamic_rope,
            launched: None,
            pending_events: Vec::new(),
            speculator: Speculator::new(speculation),
            pace,
            over: None,
            options: options.clone(),
            packed_entry: None,
            background: None,
            notices: told,
        })
    }

    /// Loads a smaller model of the same vocabulary, whose guesses are verified from now on. `tokenizers` are the model's
    /// and the draft model's, where both have one.
    ///
    /// # Errors
    /// [`EngineError::Vocabulary`] with the first token that differs; [`ModelError::Unsupported`](yirage_model::ModelError::Unsupported)
    /// where either model has recurrent layers; and as [`Engine::load`].
    pub fn load_draft(
        &mut self,
        checkpoint: &Checkpoint,
        tokenizers: Option<(&Tokenizer, &Tokenizer)>,
        progress: LoadProgressFn,
    ) -> Result<(), EngineError> {
        if self.speculator.reads_hidden() {
            return Err(EngineError::TwoDrafters);
        }
        if self.facts.recurrent {
            return Err(cannot_guess("a draft model", &self.facts.architecture));
        }
        if let Some((model, draft)) = tokenizers {
            same_vocabulary(model, draft)?;
        }
        let options = EngineOptions { context: Some(self.facts.context), embedded: false, ..self.options.clone() };
        let sizes = (&options, self.whole_sequences());
        // It is small enough for one device, and guesses are made where the engine is.
        let device = self.device.stages().map_or(&self.device, |stages| &stages[0]).clone();
        let (draft, told) = DraftModel::load(checkpoint, device, sizes, self.sampler.plans(), progress)?;
        self.notices.extend(told.into_iter().chain(Notice::of_weights(checkpoint)));
        let (model, width) = (self.facts.vocabulary, draft.vocabulary());
        if tokenizers.is_none() && model != width {
            return Err(VocabularyError::Width { model, draft: width }.into());
        }
        self.set_draft(draft);
        Ok(())
    }

    /// Loads the layer of the model's checkpoint that predicts further tokens, whose guesses are verified from now on.
    fn load_mtp_head(&mut self, checkpoint: &Checkpoint, progress: LoadProgressFn) -> Result<(), EngineError> {
        if self.facts.recurrent {
            return Err(cannot_guess("an MTP head", &self.facts.architecture));
        }
        let [whole] = &self.stages[..] else {
            return Err(load::whole_model_wanted("an MTP head", self.stages.len()));
        };
        let model = LoadedModel {
            checkpoint,
            weights: &whole.weights,
            bindings: &whole.bindings,
            context: self.facts.context,
            kv: self.facts.kv,
        };
        let sizes = (&self.options, self.whole_sequences());
        let plans = self.sampler.plans();
        let (head, told) = DraftModel::load_mtp_head(&model, self.device.clone(), sizes, plans, progress)?;
        self.notices.extend(told);
        self.set_draft(head);
        Ok(())
    }

    fn set_draft(&mut self, draft: DraftModel) {
        let share = draft.read_bytes() as f64 / self.facts.bytes.weights.max(1) as f64;
        self.speculator.set_model(draft, share);
    }

    /// Sequences of full length that the cache holds, at least one.
    fn whole_sequences(&self) -> u32 {
        match self.options.cache {
            CacheSize::Sequences(sequences) => sequences,
            CacheSize::Bytes(_) | CacheSize::Blocks(_) => {
                let kv = self.scheduler.kv();
                let blocks = (0..kv.groups().len()).map(|group| kv.total_blocks(group)).max();
                let positions = blocks.map_or(0, |blocks| blocks * kv.block_positions());
                u32::try_from(positions / self.facts.context as usize).unwrap_or(u32::MAX).max(1)
            }
        }
    }
}

/// Why a checkpoint has no MTP head that could guess.
fn no_mtp_head(checkpoint: &Checkpoint, device: &dyn Device, options: &EngineOptions) -> EngineError {
    let plain = EngineOptions { speculation: Speculation::default(), ..options.clone() };
    match load::build(checkpoint, device, &plain) {
        Ok(built) if built.model.groups.contains(&KvCacheSpec::Recurrent) => {
            cannot_guess("an MTP head", &built.model.name)
        }
        Ok(built) => EngineError::NoMtpHead { architecture: built.model.name },
        Err(error) => error,
    }
}

/// The caches that a model's layers were granted, in the order of the model's layers.
fn kv_caches(model: &Model, stages: &[LoadedStage]) -> Result<Vec<BoundKvCache>, EngineError> {
    let granted = |(name, group): &(String, usize)| {
        let of_stage = |(stage, loaded): (usize, &LoadedStage)| {
            loaded.bindings.kv_caches.get(name).map(|cache| (stage, cache.clone()))
        };
        let bound = stages.iter().enumerate().find_map(of_stage);
        let (stage, cache) = bound.ok_or_else(|| PrefixError::NoLayer { name: name.clone() })?;
        let block_bytes = kv_cache_type(model, name)?.bytes(&Dims::default()) as u64;
        Ok(BoundKvCache { name: name.clone(), group: *group, stage, cache, block_bytes })
    };
    model.kv_cache_group.iter().map(granted).collect()
}

/// The scheduler of an engine with these options.
fn scheduler(prepared: &ModelLoadPlan, options: &EngineOptions) -> Result<Scheduler, EngineError> {
    let kv =
        KvManager::new(&prepared.groups, options.prefix_cache)?.with_block_positions(block_positions(&prepared.model));
    let chunk = options.chunk.max(options.max_seqs);
    let config = SchedulerConfig {
        max_seqs: options.max_seqs,
        token_budget: chunk,
        max_rows: options.logit_rows.max(options.max_seqs),
        prefill_chunk: chunk,
        max_prefills: options.max_seqs,
        max_context: prepared.context,
        ..SchedulerConfig::default()
    };
    Ok(Scheduler::new(config, kv)?)
}
