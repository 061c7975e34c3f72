//! Several devices that compute a model together: to the engine they are one.
//!
//! Each rank runs the same plan on its part of the weights and of the KV caches; the plan says where they give each other what
//! they have. A weight's rows go to the rank that holds them while the weight is read, so no device has more than its part
//! ([`RankPart`]).

use crate::device::{Bindings, Device, MemoryReport, Program, SharedArena, WeightSink};
use crate::error::HalError;
use crate::handle::{KvCacheHandle, WeightHandle};
use crate::info::DeviceInfo;
use crate::rank_part::RankPart;
use crate::step::{Fence, OutputHandle, Pending, StepInputValue, StepOutputs, StepRequest};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use yirage_ir::{Type, ValueSource};
use yirage_plan::{ExpertDivision, Target, VerifiedPlan, WeightEntry};

/// The group.
pub struct DeviceGroup {
    info: DeviceInfo,
    ranks: Vec<Arc<dyn Device>>,
    experts: ExpertDivision,
    /// Why no rank takes a step any more: one of them has not taken one that others have.
    broken: Arc<OnceLock<String>>,
}

/// A weight of which each rank has its part, or all.
struct GroupWeight(Vec<WeightHandle>);

/// A cache that the ranks have when a plan says of what type.
struct GroupKvCache {
    k_width: u32,
    blocks: usize,
    /// The type of a rank's block, and what each rank was granted.
    granted: Mutex<Option<(Type, Vec<KvCacheHandle>)>>,
}

impl DeviceGroup {
    /// The group of these devices, rank 0 first, which share experts so.
    ///
    /// # Errors
    /// Devices that are not all of one target, made for so many ranks.
    pub fn new(
        info: DeviceInfo,
        ranks: Vec<Arc<dyn Device>>,
        experts: ExpertDivision,
    ) -> Result<DeviceGroup, HalError> {
        let wrong = |why: String| Err(HalError::Load(why));
        let Some(first) = ranks.first().map(|rank| rank.target()) else { return wrong("a group of no device".into()) };
        if first.ranks as usize != ranks.len() {
            return wrong(format!("{} devices, each made for a group of {}", ranks.len(), first.ranks));
        }
        if let Some(other) = ranks.iter().map(|rank| rank.target()).find(|target| *target != first) {
            return wrong(format!("a group of {} and {}: all ranks are alike", first.describe(), other.describe()));
        }
        Ok(DeviceGroup { info, ranks, experts, broken: Arc::default() })
    }

    /// What each rank holds.
    pub fn rank_memory(&self) -> Vec<MemoryReport> {
        self.ranks.iter().map(|rank| rank.memory()).collect()
    }

    /// What each rank holds of a weight, with its device.
    fn parts<'a>(
        &'a self,
        entry: &'a WeightEntry,
    ) -> impl Iterator<Item = Result<(RankPart, &'a Arc<dyn Device>), HalError>> {
        let ranks = self.ranks.len() as u32;
        self.ranks.iter().enumerate().map(move |(rank, device)| Ok((RankPart::of(entry, rank, ranks)?, device)))
    }
}

impl Device for DeviceGroup {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn target(&self) -> Target {
        Target { experts: self.experts, ..self.ranks[0].target() }
    }

    fn in_flight(&self) -> usize {
        self.ranks.iter().map(|rank| rank.in_flight()).min().unwrap_or(1)
    }

    fn memory(&self) -> MemoryReport {
        self.rank_memory().into_iter().fold(MemoryReport::default(), MemoryReport::and)
    }

    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError> {
        self.parts(entry).map(|part| part.and_then(|(part, device)| device.weight_bytes(part.entry()))).sum()
    }

    /// What a block takes where every rank has all of it: of how many heads a rank has its part, its plan says.
    fn kv_block_bytes(&self, block: &Type, k_width: u32) -> Result<u64, HalError> {
        self.ranks.iter().map(|rank| rank.kv_block_bytes(block, k_width)).sum()
    }

    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError> {
        let sink = |part: Result<(RankPart, &Arc<dyn Device>), HalError>| {
            let (part, device) = part?;
            let sink = device.weight(part.entry())?;
            Ok(part.sink(sink))
        };
        Ok(Box::new(GroupSink { sinks: self.parts(entry).map(sink).collect::<Result<_, HalError>>()? }))
    }

    fn kv_cache(&self, _: &Type, k_width: u32, blocks: usize) -> Result<KvCacheHandle, HalError> {
        Ok(KvCacheHandle(Arc::new(GroupKvCache { k_width, blocks, granted: Mutex::default() })))
    }

    fn load(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, HalError> {
        let arenas = bindings.arena.memory(
            |known: &Vec<SharedArena>| known.len() == self.ranks.len(),
            || Ok::<_, HalError>(self.ranks.iter().map(|_| SharedArena::default()).collect()),
        )?;
        let mut programs = Vec::with_capacity(self.ranks.len());
        for (rank, device) in self.ranks.iter().enumerate() {
            let own = self.rank_bindings(rank, plan, bindings, arenas[rank].clone())?;
            programs.push(device.load(plan, &own)?);
        }
        Ok(Box::new(GroupProgram { programs, broken: self.broken.clone(), _arenas: arenas }))
    }
}

impl DeviceGroup {
    /// What the names of a plan stand for on one rank.
    fn rank_bindings(
        &self,
        rank: usize,
        plan: &VerifiedPlan,
        bindings: &Bindings,
        arena: SharedArena,
    ) -> Result<Bindings, HalError> {
        let mut own = Bindings { arena, kernel_variant: bindings.kernel_variant.clone(), ..Bindings::default() };
        for (name, handle) in &bindings.weights {
            let foreign = || HalError::Load(format!("`{name}` is bound to memory of another device"));
            let weight = handle.0.downcast_ref::<GroupWeight>().ok_or_else(foreign)?;
            own.weights.insert(name.clone(), weight.0[rank].clone());
        }
        for id in plan.graph.inputs_of(ValueSource::KvCache) {
            let value = plan.graph.value(id);
            let unbound = || HalError::Load(format!("`{}` is not bound to a cache of this device", value.name));
            let handle = bindings.kv_caches.get(&value.name).ok_or_else(unbound)?;
            let cache = handle.0.downcast_ref::<GroupKvCache>().ok_or_else(unbound)?;
            own.kv_caches.insert(value.name.clone(), cache.of_rank(rank, &value.ty, &self.ranks)?);
        }
        Ok(own)
    }
}

impl GroupKvCache {
    /// A rank's cache, which all ranks are granted when the first plan asks for it.
    fn of_rank(&self, rank: usize, block: &Type, ranks: &[Arc<dyn Device>]) -> Result<KvCacheHandle, HalError> {
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        if granted.is_none() {
            let each = ranks.iter().map(|device| device.kv_cache(block, self.k_width, self.blocks));
            *granted = Some((block.clone(), each.collect::<Result<_, _>>()?));
        }
        match granted.as_ref() {
            Some((known, handles)) if known == block => Ok(handles[rank].clone()),
            _ => Err(HalError::Load(format!("a cache of {block} for a rank that has one of another type"))),
        }
    }
}

/// Gives all ranks the rows of a weight, of which each takes its own.
struct GroupSink {
    sinks: Vec<Box<dyn WeightSink>>,
}

impl WeightSink for GroupSink {
    fn row_step(&self) -> usize {
        self.sinks.iter().map(|sink| sink.row_step()).max().unwrap_or(1)
    }

    fn write_rows(&mut self, first_row: usize, bytes: &[u8]) -> Result<(), HalError> {
        self.sinks.iter_mut().try_for_each(|sink| sink.write_rows(first_row, bytes))
    }

    fn finish(self: Box<Self>) -> Result<WeightHandle, HalError> {
        let parts = self.sinks.into_iter().map(|sink| sink.finish()).collect::<Result<_, _>>()?;
        Ok(WeightHandle(Arc::new(GroupWeight(parts))))
    }
}

/// A plan on all ranks.
struct GroupProgram {
    programs: Vec<Box<dyn Program>>,
    broken: Arc<OnceLock<String>>,
    /// Kept for the programs that come after.
    _arenas: Arc<Vec<SharedArena>>,
}

/// An output that each rank has.
struct GroupOutput(Vec<OutputHandle>);

impl Program for GroupProgram {
    fn submit(&mut self, step: StepRequest) -> Result<Fence, HalError> {
        if let Some(why) = self.broken.get() {
            return Err(HalError::Lost(why.clone()));
        }
        let mut fences = Vec::with_capacity(self.programs.len());
        for (rank, program) in self.programs.iter_mut().enumerate() {
            let reads = if rank == 0 { step.reads.clone() } else { Vec::new() };
            let inputs = step.inputs.iter().map(|input| rank_input(input, rank)).collect::<Result<_, _>>()?;
            match program.submit(StepRequest { kind: step.kind, dims: step.dims, inputs, reads }) {
                Ok(fence) => fences.push(fence),
                // Nothing was submitted of it.
                Err(error @ HalError::Step(_)) if rank == 0 => return Err(error),
                // The others wait for it in vain, and would meet it in another step.
                Err(error) => {
                    let _ = self.broken.set(format!("rank {rank} has not taken a step that others have: {error}"));
                    return Err(error);
                }
            }
        }
        Ok(Fence::Pending(Box::new(GroupStep(fences))))
    }

    fn output_handle(&self, index: usize) -> Result<OutputHandle, HalError> {
        let each = self.programs.iter().map(|program| program.output_handle(index)).collect::<Result<_, _>>()?;
        Ok(OutputHandle(Arc::new(GroupOutput(each))))
    }

    fn has_device_times(&self) -> bool {
        self.programs[0].has_device_times()
    }
}

fn rank_input(input: &StepInputValue, rank: usize) -> Result<StepInputValue, HalError> {
    match input {
        StepInputValue::Host(memory) => Ok(StepInputValue::Host(memory.clone())),
        StepInputValue::Resident(handle) => {
            let foreign = || HalError::Step("an input lies on a device of another backend".into());
            let output = handle.0.downcast_ref::<GroupOutput>().ok_or_else(foreign)?;
            Ok(StepInputValue::Resident(output.0[rank].clone()))
        }
    }
}

/// A step that all ranks have taken.
struct GroupStep(Vec<Fence>);

impl Pending for GroupStep {
    fn is_done(&self) -> bool {
        self.0.iter().all(Fence::is_done)
    }

    fn wait(self: Box<Self>) -> Result<StepOutputs, HalError> {
        // All are waited for: what follows finds no rank in this step.
        let ended: Vec<Result<StepOutputs, HalError>> = self.0.into_iter().map(Fence::wait).collect();
        let mut of_ranks = ended.into_iter();
        let first = of_ranks.next().unwrap_or_else(|| Ok(StepOutputs::default()))?;
        of_ranks.try_for_each(|rank| rank.map(drop))?;
        Ok(first)
    }
}
