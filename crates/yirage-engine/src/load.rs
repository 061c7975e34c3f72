//! From files to a model on a device: what it will take is known before anything is loaded.

use crate::error::EngineError;
use crate::kv::{CacheGroup, GroupConfig, KvError};
use crate::limits::{BLOCK, MAX_CONTEXT, MAX_DRAFTS};
use crate::memory::LoadBytes;
use crate::options::{DEFAULT_CONTEXT, EngineOptions};
use crate::scheduler::ConfigError;
use std::collections::HashMap;
use yirage_compile::{Options as CompileOptions, compile, plan_weights};
use yirage_hal::{Bindings, Device, WeightHandle};
use yirage_ir::{Dims, Format, Source, Type};
use yirage_model::arch::{self, BuildOptions, Model};
use yirage_model::checkpoint::StoredType;
use yirage_model::weights::{WeightBinding, materialise};
use yirage_model::{Checkpoint, ModelError, RawConfig};
use yirage_plan::work::{Costs, Sizes};
use yirage_plan::{VerifiedPlan, WeightEntry, WeightPlan};

/// Bytes of a weight that are read before their pages are given back.
const PIECE: usize = 8 << 20;

/// Progress of a load: bytes of weights done, and of all.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

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
    let kv = options.kv_format(weights_f32);
    check_context(&config, options, context)?;
    let model = arch::build(checkpoint, &config, BuildOptions { kv, context, hidden: options.hidden })?;
    let target = device.target();
    let compiling = CompileOptions::new(options.precision);
    let weights = plan_weights(&model.graph, &target)?;
    let mut plans = Vec::new();
    for bucket in buckets(options, context) {
        plans.push(compile(&model.graph, bucket, &target, &weights, &compiling)?);
    }
    let blocks = pool_blocks(&model, options, context);
    let sizes = DeviceSizes::new(device, &model, &weights)?;
    let bytes = LoadBytes::predict(&sizes, &model, &plans, &blocks, options, context);
    bytes.check(device)?;
    let groups = group_configs(&model, &blocks)?;
    let costs = Costs::new(&plans[0].graph, &sizes);
    Ok(Prepared { model, weights, plans, groups, context, kv, bytes, costs })
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

/// The sizes plans are made for: steps of decoding sequences only, those that verify drafts besides, and steps with
/// prefill. Without drafts there is nothing to verify.
fn buckets(options: &EngineOptions, context: u32) -> Vec<Dims> {
    let blocks = context.div_ceil(BLOCK as u32);
    let (seqs, rows) = (options.max_seqs, options.logit_rows.max(options.max_seqs));
    let prefill = Dims { tokens: options.chunk.max(seqs), seqs, blocks, rows };
    let drafts = options.speculation.most.min(MAX_DRAFTS);
    let tokens = [seqs, seqs.saturating_mul(1 + drafts)];
    let mut buckets: Vec<Dims> =
        tokens.map(|n| Dims { tokens: n.min(prefill.tokens), seqs, blocks, rows: n.min(rows) }).into();
    buckets.push(prefill);
    buckets.dedup();
    buckets
}

/// The KV manager's view of a model's cache group: widths of all heads together.
fn cache_group(model: &Model, g: usize) -> CacheGroup {
    let layers = model.state_group.iter().filter(|(_, of)| *of == g).count() as u32;
    match model.groups[g] {
        arch::CacheGroup::Paged { kv_heads, k_width, v_width, window } => {
            CacheGroup::Paged { k_width: kv_heads * k_width, v_width: kv_heads * v_width, window, layers }
        }
        arch::CacheGroup::Latent { rank, rope } => CacheGroup::Latent { rank, rope, layers },
        arch::CacheGroup::Slot { bytes } => CacheGroup::Slot { bytes },
    }
}

/// Blocks of each group's pool: enough for `cache_seqs` sequences of full length.
fn pool_blocks(model: &Model, options: &EngineOptions, context: u32) -> Vec<u64> {
    let blocks = |g| {
        let each = cache_group(model, g).peak_blocks(context as usize, options.chunk as usize) as u64;
        // One block more a running sequence: short sequences begin blocks of their own.
        each * u64::from(options.cache_seqs.max(1)) + u64::from(options.max_seqs)
    };
    (0..model.groups.len()).map(blocks).collect()
}

fn group_configs(model: &Model, blocks: &[u64]) -> Result<Vec<GroupConfig>, EngineError> {
    let config = |(group, &blocks): (usize, &u64)| match u32::try_from(blocks) {
        Ok(blocks) => Ok(GroupConfig { group: cache_group(model, group), blocks }),
        Err(_) => Err(KvError::PoolSize { group, blocks }.into()),
    };
    blocks.iter().enumerate().map(config).collect()
}

/// What weights and blocks of states take on the device.
pub(crate) struct DeviceSizes {
    pub(crate) weights: HashMap<String, u64>,
    pub(crate) blocks: HashMap<String, u64>,
}

impl DeviceSizes {
    fn new(device: &dyn Device, model: &Model, weights: &WeightPlan) -> Result<DeviceSizes, EngineError> {
        let mut sizes = DeviceSizes { weights: HashMap::new(), blocks: HashMap::new() };
        for entry in &weights.entries {
            sizes.weights.insert(entry.name.clone(), device.weight_bytes(entry)?);
        }
        for (name, group) in &model.state_group {
            let block = state_type(model, name)?;
            let bytes = device.state_block_bytes(&block, k_width(&model.groups[*group]))?;
            sizes.blocks.insert(name.clone(), bytes);
        }
        Ok(sizes)
    }
}

impl Sizes for DeviceSizes {
    fn weight(&self, name: &str) -> u64 {
        self.weights.get(name).copied().unwrap_or(0)
    }

    fn position(&self, name: &str) -> f64 {
        self.blocks.get(name).map_or(0.0, |&bytes| bytes as f64 / BLOCK as f64)
    }
}

fn state_type(model: &Model, name: &str) -> Result<Type, EngineError> {
    let id = model.graph.inputs_of(Source::State).find(|&id| model.graph.value(id).name == name);
    let missing = || ModelError::Unsupported { what: format!("state `{name}`"), why: "the graph has none".into() };
    Ok(model.graph.ty(id.ok_or_else(missing)?).clone())
}

/// Elements of a head's key in a block of the state.
fn k_width(group: &arch::CacheGroup) -> u32 {
    match *group {
        arch::CacheGroup::Paged { k_width, .. } => k_width,
        arch::CacheGroup::Latent { rank, rope } => rank + rope,
        arch::CacheGroup::Slot { .. } => 0,
    }
}

/// Loads the weights that `adopted` lacks, and grants the cache.
pub(crate) fn bind(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    prepared: &Prepared,
    adopted: HashMap<String, WeightHandle>,
    progress: Progress,
) -> Result<Bindings, EngineError> {
    let bound = bind_all(checkpoint, device, prepared, adopted, progress);
    // What a file no longer had was read as zeros, whatever came of it.
    checkpoint.intact()?;
    bound
}

fn bind_all(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    prepared: &Prepared,
    adopted: HashMap<String, WeightHandle>,
    progress: Progress,
) -> Result<Bindings, EngineError> {
    let mut bindings = Bindings { weights: adopted, ..Bindings::default() };
    let by_name: HashMap<&str, &WeightBinding> = prepared.model.weights.iter().map(|w| (w.name.as_str(), w)).collect();
    let total: u64 = prepared.weights.entries.iter().map(|e| e.ty.bytes(&Dims::default()) as u64).sum();
    let mut done = 0;
    for entry in &prepared.weights.entries {
        if bindings.weights.contains_key(&entry.name) {
            continue;
        }
        let missing = || ModelError::Unsupported {
            what: format!("weight `{}`", entry.name),
            why: "the architecture declares it without a source".into(),
        };
        let binding = by_name.get(entry.name.as_str()).ok_or_else(missing)?;
        let handle = load_weight(checkpoint, device, entry, binding, &mut |bytes| {
            done += bytes;
            progress(done, total);
        })?;
        bindings.weights.insert(entry.name.clone(), handle);
    }
    for (name, group) in &prepared.model.state_group {
        let blocks = prepared.groups[*group].blocks as usize;
        let state =
            device.state(&state_type(&prepared.model, name)?, k_width(&prepared.model.groups[*group]), blocks)?;
        bindings.states.insert(name.clone(), state);
    }
    Ok(bindings)
}

/// One weight, piece by piece; the file's pages are given back after each piece.
fn load_weight(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    entry: &WeightEntry,
    binding: &WeightBinding,
    done: &mut dyn FnMut(u64),
) -> Result<WeightHandle, EngineError> {
    let mut sink = device.weight(entry)?;
    let step = sink.row_step();
    let rows_at_once = (PIECE / binding.row_bytes().max(1) / step).max(1) * step;
    let mut scratch = Vec::new();
    let mut first = 0;
    while first < binding.rows() {
        let rows = first..binding.rows().min(first + rows_at_once);
        let bytes = materialise(checkpoint, binding, rows.clone(), &mut scratch)?;
        sink.write_rows(first, bytes)?;
        done(bytes.len() as u64);
        first = rows.end;
        release(checkpoint, binding, first);
    }
    Ok(sink.finish()?)
}

/// Gives back the pages of tensors that have been read: all of them once the weight is whole, and the beginning of a
/// tensor that is read from front to back.
fn release(checkpoint: &Checkpoint, binding: &WeightBinding, rows_done: usize) {
    for name in binding.tensors() {
        if let Some(t) = checkpoint.tensor(name) {
            let whole = t.range.len();
            let done = if rows_done == binding.rows() { whole } else { (rows_done * binding.row_bytes()).min(whole) };
            checkpoint.release(t, 0..done);
        }
    }
}
