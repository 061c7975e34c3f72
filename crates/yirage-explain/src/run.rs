//! Running a plan with made-up inputs, so that there is something to measure.
//!
//! Weights and float step inputs hold random numbers, step inputs of integers hold zeros, which are valid as ids and indices. What a
//! kernel takes does not depend on them but where it chooses by its data; that is not told by such a run.

use crate::error::ExplainError;
use crate::measured::PlanTimings;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use yirage_hal::{
    Bindings, Device, Executor, HalError, HostMemory, Limit, MAX_SPANS, Profile, Record, SelectionReason, write_view,
};
use yirage_ir::rng::Rng;
use yirage_ir::{DType, Dims, Format, Graph, Type, ValueId, ValueSource};
use yirage_plan::work::{Costs, ResidentSizes, SequenceSpan};
use yirage_plan::{ExecutorKind, Plan, VerifiedPlan, WeightEntry};

/// Most steps that are run: more than the choice of an executor takes.
const STEPS: usize = 64;
/// Fewest steps that are run, whatever they take.
const FEWEST: usize = 3;
/// No further step begins when so much time is over.
const ENOUGH: Duration = Duration::from_secs(20);

/// What a plan did when it ran.
#[derive(Clone, PartialEq, Debug)]
pub struct PlanRun {
    /// The executor of its next step, and why it is that one.
    pub chosen: (ExecutorKind, SelectionReason),
    /// What its steps took.
    pub measured: Option<PlanTimings>,
    /// When each task began and ended.
    pub profile: Profile,
}

/// What the weights of a plan take on a device, and its states as their type says.
#[derive(Clone, PartialEq, Debug)]
pub struct StoredSizes {
    weights: HashMap<String, u64>,
    positions: HashMap<String, f64>,
}

impl StoredSizes {
    /// Of a plan for this device.
    ///
    /// # Errors
    /// What the device says of a weight.
    pub fn new(device: &dyn Device, plan: &Plan) -> Result<StoredSizes, HalError> {
        let weight = |entry: &WeightEntry| Ok((entry.name.clone(), device.weight_bytes(entry)?));
        let position = |id: ValueId| {
            let (name, ty) = (plan.graph.value(id).name.clone(), plan.graph.ty(id));
            // A block: its positions come first.
            let positions = ty.shape.first().map_or(1, |d| d.get(&Dims::default())).max(1);
            (name, ty.bytes(&Dims::default()) as f64 / positions as f64)
        };
        Ok(StoredSizes {
            weights: plan.weights.entries.iter().map(weight).collect::<Result<_, HalError>>()?,
            positions: plan.graph.inputs_of(ValueSource::KvCache).map(position).collect(),
        })
    }
}

impl ResidentSizes for StoredSizes {
    fn weight(&self, name: &str) -> u64 {
        self.weights.get(name).copied().unwrap_or(0)
    }

    fn position(&self, name: &str) -> f64 {
        self.positions.get(name).copied().unwrap_or(0.0)
    }
}

/// The ceilings that a graph's step meets, when products with weights of a format meet that of `limit_of`.
pub fn limits(
    graph: &Graph,
    sizes: &dyn ResidentSizes,
    spans: &[SequenceSpan],
    limit_of: &dyn Fn(Format) -> Limit,
) -> Vec<Limit> {
    let work = Costs::new(graph, sizes).step(spans);
    let products = work.matmul_ops.iter().map(|(format, _)| limit_of(*format));
    [Limit::MemoryRead, Limit::F32].into_iter().chain(products).collect()
}

/// Runs `plan` for steps of these sizes, by `executor` or by what the first steps choose, with kernels
/// that go by `variant` or by the device's own, and keeps the times of its tasks.
///
/// # Errors
/// A device that keeps no such times, a graph with states, and what the device says.
pub fn run(
    device: &dyn Device,
    plan: &VerifiedPlan,
    dims: &Dims,
    executor: Option<ExecutorKind>,
    variant: Option<&str>,
) -> Result<PlanRun, ExplainError> {
    let longest = plan.programs.iter().flat_map(|p| &p.queues).map(Vec::len).max().unwrap_or(0);
    let room = MAX_SPANS / plan.target().queues() as usize;
    // One thread may run the tasks of all.
    let tasks = longest.saturating_mul(plan.target().queues() as usize);
    let profiler = device.profile(tasks.saturating_mul(STEPS).clamp(STEPS, room))?;
    let bindings = Bindings { kernel_variant: variant.map(str::to_owned), ..bindings(device, plan)? };
    let mut loaded = Executor::new(device, plan, &bindings)?;
    executor.map_or(Ok(()), |kind| loaded.force(kind))?;
    let inputs = step_inputs(plan, dims);
    let began = Instant::now();
    for step in 0..STEPS {
        for (name, memory) in &inputs {
            loaded.set_memory(name, memory.clone());
        }
        loaded.run(dims)?;
        let decided = !matches!(loaded.chosen().1, SelectionReason::Measuring { .. });
        if step + 1 >= FEWEST && (began.elapsed() >= ENOUGH || (decided && step + 1 >= STEPS / 2)) {
            break;
        }
    }
    let profile = profiler.profile();
    Ok(PlanRun { chosen: loaded.chosen(), measured: PlanTimings::new(plan, dims, &profile), profile })
}

fn bindings(device: &dyn Device, plan: &VerifiedPlan) -> Result<Bindings, ExplainError> {
    if let Some(cache) = plan.graph.inputs_of(ValueSource::KvCache).next() {
        return Err(ExplainError::NotMadeUp {
            what: format!("the KV cache `{}`", plan.graph.value(cache).name),
            why: "which part of a block is keys only a model says; measure the model itself".into(),
        });
    }
    let mut bindings = Bindings::default();
    let mut rng = Rng::new(1);
    for entry in &plan.weights.entries {
        let mut sink = device.weight(entry)?;
        write_view(&mut *sink, &entry.name, &entry.ty, &elements(&entry.ty, &Dims::default(), &mut rng))?;
        bindings.weights.insert(entry.name.clone(), sink.finish()?);
    }
    Ok(bindings)
}

fn step_inputs(plan: &VerifiedPlan, dims: &Dims) -> Vec<(String, Arc<dyn HostMemory>)> {
    let mut rng = Rng::new(2);
    let slot = |id: ValueId| {
        let value = plan.graph.value(id);
        let record = Record::of(&elements(&value.ty, dims, &mut rng));
        (value.name.clone(), Arc::new(record) as Arc<dyn HostMemory>)
    };
    plan.graph.inputs_of(ValueSource::StepInput).map(slot).collect()
}

/// Random numbers from -1 to 1 where the type has an encoder, else zeros.
fn elements(ty: &Type, dims: &Dims, rng: &mut Rng) -> Vec<u8> {
    let mut bytes = vec![0; ty.storage_bytes(dims)];
    let DType::Stored(format) = ty.dtype else { return bytes };
    let (info, Some(encode)) = (format.info(), format.info().encode) else { return bytes };
    let whole = bytes.len() / info.bytes * info.bytes;
    for block in bytes[..whole].chunks_exact_mut(info.bytes) {
        let number = |_| (rng.next_u64() >> 40) as f32 / (1u32 << 23) as f32 - 1.0;
        let numbers: Vec<f32> = (0..info.block).map(number).collect();
        encode(&numbers, block);
    }
    bytes
}
