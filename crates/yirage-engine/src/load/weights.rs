//! Weights onto the device, piece by piece, and a cache beside them.

use super::cache::kv_cache_type;
use super::prepare::ModelLoadPlan;
use super::progress::LoadProgressFn;
use super::stage::{StageLoadPlan, stage_devices};
use crate::error::EngineError;
use crate::graph_model::GraphModel;
use std::collections::HashMap;
use yirage_hal::{Bindings, Device, WeightHandle};
use yirage_ir::Dims;
use yirage_model::arch::Model;
use yirage_model::weights::{WeightBinding, materialise};
use yirage_model::{Checkpoint, ModelError};
use yirage_plan::{WeightEntry, WeightPlan};

/// Bytes of a weight that are read before their pages are given back.
const PIECE: usize = 8 << 20;

/// Loads the weights of all stages that `adopted` lacks, and grants their caches: what each stage's names stand for.
pub(crate) fn bind(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    prepared: &ModelLoadPlan,
    adopted: &HashMap<String, WeightHandle>,
    progress: LoadProgressFn,
) -> Result<Vec<Bindings>, EngineError> {
    let bytes = |stage: &StageLoadPlan| stored_bytes(&stage.weights);
    let (total, mut before) = (prepared.stages.iter().map(bytes).sum(), 0);
    let stage = |(stage, device): (&StageLoadPlan, &dyn Device)| {
        let (model, weights) = (&stage.model, &stage.weights);
        let mut done = |bytes, _| progress(before + bytes, total);
        let mut bindings = bind_weights(checkpoint, device, model, weights, adopted.clone(), &mut done)?;
        before += bytes(stage);
        grant_cache(device, prepared, stage, &mut bindings)?;
        Ok(bindings)
    };
    prepared.stages.iter().zip(stage_devices(device)).map(stage).collect()
}

/// Loads the weights of a model that is given, and grants the caches, as [`bind`].
pub(crate) fn bind_graph_model(
    given: &GraphModel,
    device: &dyn Device,
    prepared: &ModelLoadPlan,
    progress: LoadProgressFn,
) -> Result<Vec<Bindings>, EngineError> {
    let total: u64 = given.weights.values().map(|bytes| bytes.len() as u64).sum();
    let mut done = 0;
    let mut bind = |(stage, device): (&StageLoadPlan, &dyn Device)| {
        let mut bindings = Bindings::default();
        for entry in &stage.weights.entries {
            let missing = || EngineError::GraphModel(format!("its weight `{}` is not given", entry.name));
            let bytes = given.weights.get(&entry.name).ok_or_else(missing)?;
            let mut sink = device.weight(entry)?;
            sink.write_rows(0, bytes)?;
            bindings.weights.insert(entry.name.clone(), sink.finish()?);
            done += bytes.len() as u64;
            progress(done, total);
        }
        grant_cache(device, prepared, stage, &mut bindings)?;
        Ok(bindings)
    };
    prepared.stages.iter().zip(stage_devices(device)).map(&mut bind).collect()
}

fn grant_cache(
    device: &dyn Device,
    prepared: &ModelLoadPlan,
    stage: &StageLoadPlan,
    bindings: &mut Bindings,
) -> Result<(), EngineError> {
    let model = &stage.model;
    for (name, group) in &model.kv_cache_group {
        let blocks = prepared.groups[*group].blocks as usize;
        let state = device.kv_cache(&kv_cache_type(model, name)?, model.groups[*group].k_width(), blocks)?;
        bindings.kv_caches.insert(name.clone(), state);
    }
    Ok(())
}

/// Bytes of weights as the model's files have them.
fn stored_bytes(weights: &WeightPlan) -> u64 {
    weights.entries.iter().map(|entry| entry.ty.bytes(&Dims::default()) as u64).sum()
}

/// Loads the weights of a model that `adopted` lacks.
pub(crate) fn bind_weights(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    model: &Model,
    weights: &WeightPlan,
    adopted: HashMap<String, WeightHandle>,
    progress: LoadProgressFn,
) -> Result<Bindings, EngineError> {
    let bound = bind_all(checkpoint, device, model, weights, adopted, progress);
    // What a file no longer had was read as zeros, whatever came of it.
    checkpoint.intact()?;
    bound
}

fn bind_all(
    checkpoint: &Checkpoint,
    device: &dyn Device,
    model: &Model,
    weights: &WeightPlan,
    adopted: HashMap<String, WeightHandle>,
    progress: LoadProgressFn,
) -> Result<Bindings, EngineError> {
    let mut bindings = Bindings { weights: adopted, ..Bindings::default() };
    let by_name: HashMap<&str, &WeightBinding> = model.weights.iter().map(|w| (w.name.as_str(), w)).collect();
    let (total, mut done) = (stored_bytes(weights), 0);
    for entry in &weights.entries {
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
