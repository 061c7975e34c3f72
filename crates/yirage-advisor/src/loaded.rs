//! A workload on a device, ready to run, and what each of its steps has to do.

use crate::error::AdvisorError;
use crate::workload::OpWorkload;
use yirage_hal::Device;
use yirage_ir::cost::{Reads, StepSizes};
use yirage_ir::{Op, Type, ValueSource, cost::SequenceSpan};
use yirage_plan::WeightPlan;
use yirage_tune::{LoadedGraph, PreparedGraph, TimedStep, Timing};

/// A workload on a device.
pub(crate) struct LoadedWorkload {
    loaded: LoadedGraph,
    work: StepWork,
}

/// What a step has to do: the op's own account, and the bytes that this device has of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct StepWork {
    /// Multiplications and additions of products and attention.
    ops: f64,
    /// Bytes of what is read and of the result.
    bytes: f64,
}

/// What a device does of an op.
#[derive(Clone, PartialEq, Debug)]
pub struct OpThroughput {
    /// Its steps.
    pub timing: Timing,
    /// Multiplications and additions of a step; none where the op has no product.
    pub ops: f64,
    /// Bytes that a step reads and makes.
    pub bytes: f64,
}

impl OpThroughput {
    /// Steps for as long as the timing says.
    pub(crate) fn new(timing: Timing, work: StepWork) -> OpThroughput {
        OpThroughput { timing, ops: work.ops, bytes: work.bytes }
    }

    /// Operations a second, where there are any to count.
    pub fn ops_per_second(&self) -> Option<f64> {
        (self.ops > 0.0).then(|| self.ops / self.timing.median())
    }

    /// Bytes a second.
    pub fn bytes_per_second(&self) -> f64 {
        self.bytes / self.timing.median()
    }
}

impl LoadedWorkload {
    /// Compiles the op as any graph is, and loads it.
    ///
    /// # Errors
    /// What the compiler or the device says.
    pub(crate) fn new(device: &dyn Device, workload: OpWorkload) -> Result<LoadedWorkload, AdvisorError> {
        let OpWorkload { op, span, prepared, .. } = workload;
        let loaded = LoadedGraph::new(device, prepared.clone())?;
        let work = work(device, &op, span, &prepared, loaded.weights())?;
        Ok(LoadedWorkload { loaded, work })
    }

    /// What each step has to do.
    pub(crate) fn work(&self) -> StepWork {
        self.work
    }
}

impl TimedStep for LoadedWorkload {
    type Error = AdvisorError;

    fn step(&mut self) -> Result<(), AdvisorError> {
        Ok(self.loaded.step()?)
    }
}

fn work(
    device: &dyn Device,
    op: &Op,
    span: SequenceSpan,
    prepared: &PreparedGraph,
    weights: &WeightPlan,
) -> Result<StepWork, AdvisorError> {
    let (graph, dims) = (&prepared.graph, prepared.dims);
    let types = |ids: &[_]| ids.iter().map(|&id| graph.ty(id).clone()).collect::<Vec<Type>>();
    let (mut ops, mut bytes) = (0.0, 0.0);
    for node in &graph.nodes {
        let step = StepSizes { dims, spans: &[span] };
        let cost = op.work(&types(&node.ins), &step);
        ops += cost.ops;
        for (&id, reads) in node.ins.iter().zip(&cost.reads) {
            let value = graph.value(id);
            let whole = match (value.source, weights.get(&value.name), &prepared.cache) {
                (ValueSource::Weight, Some(entry), _) => device.weight_bytes(entry)? as f64,
                (ValueSource::KvCache, _, Some((_, cache))) => {
                    let positions = cache.block.shape.first().map_or(1, |dim| dim.get(&dims)).max(1);
                    device.kv_block_bytes(&cache.block, cache.k_width)? as f64 / positions as f64
                }
                _ => value.ty.storage_bytes(&dims) as f64,
            };
            bytes += match reads {
                Reads::Nothing => 0.0,
                Reads::Whole => whole,
                Reads::Parts(count) | Reads::Positions(count) => whole * count,
            };
        }
        bytes += types(&node.outs).iter().map(|ty| ty.storage_bytes(&dims) as f64).sum::<f64>();
    }
    Ok(StepWork { ops, bytes })
}
