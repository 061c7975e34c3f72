//! A graph on a device, ready to run.

use crate::error::TuneError;
use crate::limits::SETTLING;
use crate::prepared::PreparedGraph;
use crate::timing::TimedStep;
use std::sync::Arc;
use yirage_compile::{compile, plan_weights};
use yirage_hal::{Bindings, Device, Executor, HostMemory, SelectionReason, write_view};
use yirage_ir::Dims;
use yirage_plan::WeightPlan;

/// A graph on a device. Each [`TimedStep::step`] sets its step inputs and runs it to its end.
pub struct LoadedGraph {
    executor: Executor,
    step_inputs: Vec<(String, Arc<dyn HostMemory>)>,
    dims: Dims,
    weights: WeightPlan,
}

impl LoadedGraph {
    /// Compiles the graph as any is, and loads it.
    ///
    /// # Errors
    /// What the compiler or the device says; a weight without values.
    pub fn new(device: &dyn Device, prepared: PreparedGraph) -> Result<LoadedGraph, TuneError> {
        let target = device.target();
        let weights = plan_weights(&prepared.graph, &target)?;
        let bindings = bind(device, &prepared, &weights)?;
        let plan = compile(&prepared.graph, prepared.dims, &target, &weights, &prepared.options)?;
        let executor = Executor::new(device, &plan, &bindings)?;
        let shared = |(name, record)| (name, record as Arc<dyn HostMemory>);
        let step_inputs = prepared.step_inputs.into_iter().map(shared).collect();
        Ok(LoadedGraph { executor, step_inputs, dims: prepared.dims, weights })
    }

    /// Runs it until it is chosen which of the device's executors runs it: so long they take turns, and what steps take says
    /// nothing of the graph.
    ///
    /// # Errors
    /// As [`TimedStep::step`].
    pub fn settle(&mut self) -> Result<(), TuneError> {
        // A device whose steps run beside the host never chooses.
        for _ in 0..SETTLING {
            if !matches!(self.executor.chosen(), (_, SelectionReason::Measuring { .. })) {
                break;
            }
            self.step()?;
        }
        Ok(())
    }

    /// How its weights lie.
    pub fn weights(&self) -> &WeightPlan {
        &self.weights
    }

    /// What runs it, with the outputs of the last step.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }
}

impl TimedStep for LoadedGraph {
    type Error = TuneError;

    fn step(&mut self) -> Result<(), TuneError> {
        for (name, memory) in &self.step_inputs {
            self.executor.set_memory(name, memory.clone());
        }
        self.executor.run(&self.dims)?;
        Ok(())
    }
}

fn bind(device: &dyn Device, prepared: &PreparedGraph, weights: &WeightPlan) -> Result<Bindings, TuneError> {
    let mut bindings = Bindings::default();
    for entry in &weights.entries {
        let given = prepared.weights.iter().find(|(name, _)| *name == entry.name);
        let (name, bytes) = given.ok_or_else(|| TuneError::NoWeight(entry.name.clone()))?;
        let mut sink = device.weight(entry)?;
        write_view(&mut *sink, name, &entry.ty, bytes)?;
        bindings.weights.insert(name.clone(), sink.finish()?);
    }
    if let Some((name, cache)) = &prepared.cache {
        let state = device.kv_cache(&cache.block, cache.k_width, cache.blocks as usize)?;
        bindings.kv_caches.insert(name.clone(), state);
    }
    Ok(bindings)
}
