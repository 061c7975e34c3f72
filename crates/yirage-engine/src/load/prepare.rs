//! A model's numbers, and whether it fits, before anything of it is loaded.

use super::buckets::buckets;
use super::cache::{group_configs, pool_blocks};
use super::predict::{check, predict};
use super::sizes::DeviceSizes;
use crate::error::EngineError;
use crate::kv::GroupConfig;
use crate::limits::MAX_CONTEXT;
use crate::memory::LoadBytes;
use crate::options::{DEFAULT_CONTEXT, EngineOptions};
use crate::scheduler::ConfigError;
use yirage_compile::{Options as CompileOptions, compile, plan_weights};
use yirage_hal::Device;
use yirage_ir::Format;
use yirage_model::arch::{self, BuildOptions, Model, ModelOutput};
use yirage_model::checkpoint::StoredType;
use yirage_model::{Checkpoint, ModelError, RawConfig};
use yirage_plan::work::Costs;
use yirage_plan::{VerifiedPlan, WeightPlan};

/// A model's numbers before it is loaded.
pub(crate) struct Prepared {
    pub(crate) model: Model,
    pub(crate) weights: WeightPlan,
    pub(crate) plans: Vec<VerifiedPlan>,
    pub(crate) groups: Vec<GroupConfig>,
    pub(crate) context: u32,
    pub(crate) kv: Format,
    pub(crate) bytes: LoadBytes,
    pub(crate) costs: Costs,
}

/// Builds, plans and compiles the model, and checks that it fits.
pub(crate) fn prepare(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    options: &EngineOptions,
) -> Result<Prepared, EngineError> {
    let config = RawConfig::load(checkpoint)?;
    let trained = config.opt_u32("max_position_embeddings")?;
    let context = options.context.unwrap_or_else(|| trained.unwrap_or(DEFAULT_CONTEXT).min(DEFAULT_CONTEXT));
    let weights_f32 = checkpoint.tensors().all(|t| t.dtype == StoredType::Format(Format::F32));
    let kv = options.kv_format(weights_f32, &device.info().capabilities);
    check_context(&config, options, context)?;
    let model = arch::build(checkpoint, &config, BuildOptions { kv, context, hidden: options.hidden })?;
    check_generates(&model)?;
    let target = device.target();
    let compiling = CompileOptions::new(options.precision);
    let weights = plan_weights(&model.graph, &target)?;
    let mut plans = Vec::new();
    for bucket in buckets(options, context) {
        plans.push(compile(&model.graph, bucket, &target, &weights, &compiling)?);
    }
    let sizes = DeviceSizes::new(device, &model, &weights)?;
    let blocks = pool_blocks(&model, options, context, &sizes.group_blocks(&model))?;
    let bytes = predict(&sizes, &model, &plans, &blocks, options);
    check(&bytes, device)?;
    let groups = group_configs(&model, &blocks)?;
    let costs = Costs::new(&plans[0].graph, &sizes);
    Ok(Prepared { model, weights, plans, groups, context, kv, bytes, costs })
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
