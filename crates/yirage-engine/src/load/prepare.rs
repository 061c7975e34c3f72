//! A model's numbers, and whether it fits, before anything of it is loaded.

use super::buckets::buckets;
use super::cache::{group_configs, pool_blocks};
use super::longest::longest;
use super::predict::{check, kept_bytes, predict};
use super::sizes::DeviceSizes;
use super::stage::{BuiltStage, StageLoadPlan, built_stages, stage_devices};
use crate::block_positions::block_positions;
use crate::error::EngineError;
use crate::graph_model::GraphModel;
use crate::kv::GroupConfig;
use crate::limits::{BLOCK, MAX_CONTEXT};
use crate::memory::LoadBytes;
use crate::options::{DEFAULT_CONTEXT, EngineOptions, check_adapters};
use crate::plans::PlanProvider;
use crate::scheduler::ConfigError;
use yirage_compile::{PassDecisions, compile_explained};
use yirage_hal::{Device, HalError};
use yirage_ir::Format;
use yirage_model::arch::{self, BuildOptions, Model, ModelOutput};
use yirage_model::checkpoint::StoredType;
use yirage_model::{Checkpoint, ModelError, RawConfig};
use yirage_plan::work::{Costs, ResidentSizes};
use yirage_plan::{KernelCapabilities, VerifiedPlan, WeightEntry, WeightPlan};

/// A model's numbers before it is loaded.
pub(crate) struct ModelLoadPlan {
    pub(crate) model: Model,
    /// What each device has of it, in the order of its layers.
    pub(crate) stages: Vec<StageLoadPlan>,
    pub(crate) groups: Vec<GroupConfig>,
    pub(crate) context: u32,
    pub(crate) kv: Format,
    /// On all devices together.
    pub(crate) bytes: LoadBytes,
    pub(crate) costs: Costs,
}

/// A model's graph and where its weights go.
pub(crate) struct BuiltModel {
    pub(crate) model: Model,
    stages: Vec<BuiltStage>,
    pub(crate) context: u32,
    pub(crate) kv: Format,
}

impl BuiltModel {
    /// The graph on the one device that it is for, and where its weights go.
    ///
    /// # Errors
    /// [`HalError::Unsupported`] for a model that several devices have stages of; `what` says what wants it whole.
    pub(crate) fn whole(self, what: &str) -> Result<(Model, WeightPlan), EngineError> {
        match <[BuiltStage; 1]>::try_from(self.stages) {
            Ok([stage]) => Ok((self.model, stage.weights)),
            Err(stages) => Err(whole_model_wanted(what, stages.len())),
        }
    }
}

/// Why what wants a whole model on one device has none on a pipeline of so many stages.
pub(crate) fn whole_model_wanted(what: &str, stages: usize) -> EngineError {
    let why = format!("the device is a pipeline of {stages} stages, and all layers are wanted on one device");
    HalError::Unsupported { what: what.into(), why }.into()
}

/// The plan of one step of a model, which no device has loaded.
pub struct PlannedStep {
    /// The plan.
    pub plan: VerifiedPlan,
    /// What its weights and states take on the device.
    pub sizes: Box<dyn ResidentSizes>,
}

/// The plan that an engine with these options runs a step of so many tokens by, of the model of `checkpoint` on `device`.
/// Nothing is loaded. What the compiler decided is added to `told`, also where it fails.
///
/// # Errors
/// As those of [`Engine::load`](crate::Engine::load) before weights are read, and a step that no plan takes.
pub fn plan_step(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    options: &EngineOptions,
    tokens: u32,
    told: &mut Vec<PassDecisions>,
) -> Result<PlannedStep, EngineError> {
    let built = build(checkpoint, device, options)?;
    let context = built.context;
    let (model, weights) = built.whole("the plan of a step")?;
    let buckets = buckets(options, context, block_positions(&model));
    let most = buckets.last().map_or(0, |b| b.tokens);
    let none = || HalError::Step(format!("a step of {tokens} tokens: the largest plan takes {most}"));
    let bucket = buckets.into_iter().find(|b| tokens <= b.tokens).ok_or_else(none)?;
    let plan = compile_explained(&model.graph, bucket, &device.target(), &weights, &options.compiling(), told)?;
    Ok(PlannedStep { plan, sizes: Box::new(DeviceSizes::new(device, &model, &weights)?) })
}

/// Builds, plans and compiles the model, and checks that it fits.
pub(crate) fn prepare(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    options: &EngineOptions,
    kept: &PlanProvider,
) -> Result<ModelLoadPlan, EngineError> {
    match prepared(build(checkpoint, device, options)?, device, options, &[], kept) {
        // A long context that nobody asked for is given up where the plans for it leave no room.
        Err(EngineError::WouldNotFit { .. }) if options.context.is_none() && options.context_within.is_some() => {
            let usual = EngineOptions { context_within: None, ..options.clone() };
            prepared(build(checkpoint, device, &usual)?, device, &usual, &[], kept)
        }
        prepared => prepared,
    }
}

/// A stage of a loaded model with other adapters beside it.
pub(crate) struct RebuiltStage {
    pub(crate) reads: Option<String>,
    pub(crate) model: Model,
    pub(crate) weights: WeightPlan,
    pub(crate) plans: Vec<VerifiedPlan>,
}

/// Builds and compiles a model that is loaded already, for other adapters: the whole, and its stages.
pub(crate) fn rebuild(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    options: &EngineOptions,
    kept: &PlanProvider,
) -> Result<(Model, Vec<RebuiltStage>), EngineError> {
    let built = build(checkpoint, device, options)?;
    let buckets = buckets(options, built.context, block_positions(&built.model));
    let rebuilt = |stage: BuiltStage| {
        let plans = stage.plans(&buckets, options, kept)?;
        let BuiltStage { reads, model, weights, .. } = stage;
        Ok::<_, EngineError>(RebuiltStage { reads, model, weights, plans })
    };
    Ok((built.model, built.stages.into_iter().map(rebuilt).collect::<Result<_, _>>()?))
}

/// The same of the MTP head of a model whose cache has the format `kv`. The head takes the weights `held` that are its
/// own too from the model, and they are not counted. `options` say the context.
pub(crate) fn prepare_mtp_head(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    (options, context, kv): (&EngineOptions, u32, Format),
    held: &[WeightEntry],
    kept: &PlanProvider,
) -> Result<ModelLoadPlan, EngineError> {
    let (config, target) = (RawConfig::load(checkpoint)?, device.target());
    let kv_block = target.kv_block_positions(kv).unwrap_or(BLOCK as u32);
    let build = BuildOptions { kv, kv_block, context, hidden: false, embedded: false, all_hidden: false };
    let model = arch::build_mtp_head(checkpoint, &config, build)?;
    if let Some(stages) = device.stages() {
        return Err(whole_model_wanted("an MTP head", stages.len()));
    }
    let stages = built_stages(&model, device)?;
    prepared(BuiltModel { model, stages, context, kv }, device, options, held, kept)
}

/// The same of a model that is given as a graph.
pub(crate) fn prepare_graph_model(
    given: &GraphModel,
    device: &dyn Device,
    options: &EngineOptions,
    kept: &PlanProvider,
) -> Result<ModelLoadPlan, EngineError> {
    let kv = given.check()?;
    let model = given.model.clone();
    let context = options.context.unwrap_or_else(|| model.context.min(DEFAULT_CONTEXT));
    if !(1..=MAX_CONTEXT).contains(&context) {
        return Err(ConfigError::OutOfRange { field: "max_context", value: context, most: MAX_CONTEXT }.into());
    }
    let stages = built_stages(&model, device)?;
    prepared(BuiltModel { model, stages, context, kv }, device, options, &[], kept)
}

/// `held` are weights on the device, of which those that the model has too are not loaded.
fn prepared(
    built: BuiltModel,
    device: &dyn Device,
    options: &EngineOptions,
    held: &[WeightEntry],
    kept: &PlanProvider,
) -> Result<ModelLoadPlan, EngineError> {
    let BuiltModel { model, stages, context, kv } = built;
    let buckets = buckets(options, context, block_positions(&model));
    let devices = stage_devices(device);
    let mut sizes = Vec::with_capacity(stages.len());
    for (stage, device) in stages.iter().zip(&devices) {
        sizes.push(DeviceSizes::new(*device, &stage.model, &stage.weights)?);
    }
    let mut block_bytes = vec![0u64; model.groups.len()];
    for (stage, sizes) in stages.iter().zip(&sizes) {
        let of_stage = sizes.group_blocks(&stage.model);
        block_bytes.iter_mut().zip(of_stage).for_each(|(all, of_stage)| *all = all.saturating_add(of_stage));
    }
    let blocks = pool_blocks(&model, options, context, &block_bytes)?;
    let mut planned = Vec::with_capacity(stages.len());
    for (at, (stage, sizes)) in stages.into_iter().zip(&sizes).enumerate() {
        let plans = stage.plans(&buckets, options, kept)?;
        let mut bytes = predict(sizes, &stage.model, &plans, &blocks);
        let shared = stage.weights.entries.iter().filter(|entry| held.contains(entry));
        bytes.weights -= shared.map(|entry| sizes.weight(&entry.name)).sum::<u64>();
        if at == 0 {
            // The first stage is where the engine is.
            bytes.tables = bytes.tables.saturating_add(kept_bytes(&model, &blocks, options));
        }
        check(&bytes, devices[at])?;
        let BuiltStage { reads, model, weights, .. } = stage;
        planned.push(StageLoadPlan { reads, model, weights, plans, bytes });
    }
    let bytes = planned.iter().map(|stage| stage.bytes).fold(LoadBytes::default(), LoadBytes::and);
    let groups = group_configs(&model, &blocks)?;
    let graphs = planned.iter().zip(&sizes).map(|(stage, sizes)| (&stage.plans[0].graph, sizes as &dyn ResidentSizes));
    let costs = Costs::of_all(graphs);
    Ok(ModelLoadPlan { model, stages: planned, groups, context, kv, bytes, costs })
}

/// Builds the model's graph for a device, as the options say.
pub(crate) fn build(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    options: &EngineOptions,
) -> Result<BuiltModel, EngineError> {
    let config = RawConfig::load(checkpoint)?;
    let trained = config.opt_u32("max_position_embeddings")?;
    let context = options.context.unwrap_or_else(|| trained.unwrap_or(DEFAULT_CONTEXT).min(DEFAULT_CONTEXT));
    let weights_f32 = checkpoint.tensors().all(|t| t.dtype == StoredType::Format(Format::F32));
    let kv = options.kv_format(weights_f32, &common_capabilities(device));
    check_context(&config, options, context)?;
    let target = device.target();
    check_adapters(&options.adapters, target.ranks)?;
    let adapters: Vec<_> = options.adapters.iter().map(|adapter| adapter.adapter.clone()).collect();
    let kv_block = kv_block_positions(device, kv)?;
    let of = |context| -> Result<BuiltModel, EngineError> {
        let (hidden, embedded) = (options.hidden, options.embedded);
        let all_hidden = options.speculation.wants_mtp_head();
        let build = BuildOptions { kv, kv_block, context, hidden, embedded, all_hidden };
        let model = arch::build_with_adapters(checkpoint, &config, build, &adapters)?;
        check_generates(&model)?;
        let stages = built_stages(&model, device)?;
        Ok(BuiltModel { model, stages, context, kv })
    };
    let built = of(context)?;
    match options.context_within.filter(|_| options.context.is_none()) {
        Some(within) => match longest(
            (&built.model, &built.stages),
            (context, trained.unwrap_or(context)),
            within,
            device,
            options,
        )? {
            // Tables of positions may grow beyond what a model can have: then what is usual holds.
            longer if longer > context => of(longer).or(Ok(built)),
            _ => Ok(built),
        },
        None => Ok(built),
    }
}

/// What the kernels of all devices of a model can compute with, as far as a cache's format depends on it.
fn common_capabilities(device: &dyn Device) -> KernelCapabilities {
    let own = |device: &dyn Device| device.info().capabilities;
    let both = |a: KernelCapabilities, b: KernelCapabilities| KernelCapabilities {
        fp16: a.fp16 && b.fp16,
        bf16: a.bf16 && b.bf16,
        ..a
    };
    stage_devices(device).into_iter().map(own).reduce(both).unwrap_or_else(|| own(device))
}

/// Positions of a block of the cache on all devices of a model.
///
/// # Errors
/// [`HalError::Unsupported`] for stages whose devices want blocks of different lengths.
fn kv_block_positions(device: &dyn Device, kv: Format) -> Result<u32, EngineError> {
    let wanted = |device: &&dyn Device| device.target().kv_block_positions(kv).unwrap_or(BLOCK as u32);
    let lengths: Vec<u32> = stage_devices(device).iter().map(wanted).collect();
    match lengths.iter().find(|&&length| length != lengths[0]) {
        None => Ok(lengths[0]),
        Some(_) => Err(HalError::Unsupported {
            what: format!("a pipeline whose stages keep {} in blocks of {lengths:?} positions", kv.info().name),
            why: "one table of blocks serves all stages; take devices of one kind".into(),
        }
        .into()),
    }
}

/// Refuses a model that says nothing of what comes next.
fn check_generates(model: &Model) -> Result<(), EngineError> {
    if model.output == ModelOutput::Logits {
        return Ok(());
    }
    Err(ModelError::Unsupported {
        what: format!("text of {}", model.name),
        why: "it is an encoder, which computes whole texts: use `yirage embed` for vectors, `yirage rerank` for scores"
            .into(),
    }
    .into())
}

/// A context that no scheduler takes, before anything of its length is planned.
fn check_context(config: &RawConfig, options: &EngineOptions, context: u32) -> Result<(), EngineError> {
    if (1..=MAX_CONTEXT).contains(&context) {
        return Ok(());
    }
    if options.context.is_some() {
        return Err(ConfigError::OutOfRange { field: "max_context", value: context, most: MAX_CONTEXT }.into());
    }
    Err(ModelError::Config {
        file: config.file().to_owned(),
        key: "max_position_embeddings".into(),
        expected: format!("a number of positions from 1 to {MAX_CONTEXT}"),
        found: context.to_string(),
    }
    .into())
}
