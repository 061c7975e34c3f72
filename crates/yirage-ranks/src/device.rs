//! The device of one rank: it is given whole weights and caches, and holds its part.

use crate::group::RankGroup;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use yirage_hal::{
    Bindings, Device, DeviceInfo, Fence, HalError, KvCacheHandle, MemoryReport, OutputHandle, Program, RankPart,
    StepInputValue, StepRequest, WeightSink,
};
use yirage_ir::{DType, NodeKind, Type, ValueSource};
use yirage_plan::{ExpertDivision, Target, VerifiedPlan, WeightEntry};

/// A device that is a rank of a group, of which this process has no other.
pub struct RankDevice {
    device: Arc<dyn Device>,
    group: Arc<RankGroup>,
    experts: ExpertDivision,
}

/// A cache that the rank has when a plan says of what type.
struct RankKvCache {
    k_width: u32,
    blocks: usize,
    granted: Mutex<Option<(Type, KvCacheHandle)>>,
}

impl RankDevice {
    /// This device, which takes part in its plans' collectives through this group, as its rank. The ranks share experts so.
    ///
    /// # Errors
    /// A device that was made for a group of another size.
    pub fn new(
        device: Arc<dyn Device>,
        group: Arc<RankGroup>,
        experts: ExpertDivision,
    ) -> Result<RankDevice, HalError> {
        let (made_for, ranks) = (device.target().ranks, group.ranks());
        match made_for == ranks {
            true => Ok(RankDevice { device, group, experts }),
            false => Err(HalError::Load(format!("a device made for {made_for} ranks, in a group of {ranks}"))),
        }
    }

    /// What this rank holds of a weight.
    fn part(&self, entry: &WeightEntry) -> Result<RankPart, HalError> {
        RankPart::of(entry, self.group.rank(), self.group.ranks())
    }

    fn bindings(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Bindings, HalError> {
        let mut own = bindings.clone();
        for id in plan.graph.inputs_of(ValueSource::KvCache) {
            let value = plan.graph.value(id);
            let unbound = || HalError::Load(format!("`{}` is not bound to a cache of this device", value.name));
            let handle = bindings.kv_caches.get(&value.name).ok_or_else(unbound)?;
            let cache = handle.0.downcast_ref::<RankKvCache>().ok_or_else(unbound)?;
            own.kv_caches.insert(value.name.clone(), cache.of_type(&value.ty, &*self.device)?);
        }
        Ok(own)
    }
}

impl RankKvCache {
    /// The cache, granted when the first plan asks for it.
    fn of_type(&self, block: &Type, device: &dyn Device) -> Result<KvCacheHandle, HalError> {
        let mut granted = self.granted.lock().unwrap_or_else(PoisonError::into_inner);
        match granted.as_ref() {
            Some((known, handle)) if known == block => Ok(handle.clone()),
            Some((known, _)) => Err(HalError::Load(format!("a cache of {block} for a rank that has one of {known}"))),
            None => {
                let handle = device.kv_cache(block, self.k_width, self.blocks)?;
                *granted = Some((block.clone(), handle.clone()));
                Ok(handle)
            }
        }
    }
}

impl Device for RankDevice {
    fn info(&self) -> &DeviceInfo {
        self.device.info()
    }

    fn target(&self) -> Target {
        Target { experts: self.experts, ..self.device.target() }
    }

    fn in_flight(&self) -> usize {
        self.device.in_flight()
    }

    fn memory(&self) -> MemoryReport {
        self.device.memory()
    }

    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError> {
        self.device.weight_bytes(self.part(entry)?.entry())
    }

    /// What a block takes where the rank has all of it: of how many heads it has its part, its plan says.
    fn kv_block_bytes(&self, block: &Type, k_width: u32) -> Result<u64, HalError> {
        self.device.kv_block_bytes(block, k_width)
    }

    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError> {
        let part = self.part(entry)?;
        let sink = self.device.weight(part.entry())?;
        Ok(part.sink(sink))
    }

    fn kv_cache(&self, _: &Type, k_width: u32, blocks: usize) -> Result<KvCacheHandle, HalError> {
        Ok(KvCacheHandle(Arc::new(RankKvCache { k_width, blocks, granted: Mutex::default() })))
    }

    fn load(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, HalError> {
        let program = self.device.load(plan, &self.bindings(plan, bindings)?)?;
        let is_collective = |kind: &NodeKind| matches!(kind, NodeKind::Op(op) if op.ranks().is_some());
        let collectives = plan.graph.nodes.iter().filter(|node| is_collective(&node.kind)).count();
        let is_shared = plan.graph.inputs_of(ValueSource::StepInput).map(|id| plan.graph.ty(id).dtype == DType::I32);
        Ok(Box::new(RankProgram { program, group: self.group.clone(), collectives, is_shared: is_shared.collect() }))
    }
}

/// A plan on this rank.
struct RankProgram {
    program: Box<dyn Program>,
    group: Arc<RankGroup>,
    collectives: usize,
    /// Which inputs of a step are the same on all ranks, in their order.
    is_shared: Vec<bool>,
}

impl Program for RankProgram {
    fn submit(&mut self, step: StepRequest) -> Result<Fence, HalError> {
        self.group.submitted(digest(&step, &self.is_shared), self.collectives);
        self.program.submit(step).inspect_err(|error| match error {
            // Nothing was submitted of it, and the other ranks are told the same of theirs.
            HalError::Step(_) => self.group.refused(self.collectives),
            error => self.group.leave(&error.to_string()),
        })
    }

    fn output_handle(&self, index: usize) -> Result<OutputHandle, HalError> {
        self.program.output_handle(index)
    }

    fn has_device_times(&self) -> bool {
        self.program.has_device_times()
    }
}

/// What is the same of a step on all ranks: its sizes, and the ids, positions and tables that the host gives it. Executors may
/// differ, and so may floats: what a rank is given of them may be its part.
fn digest(step: &StepRequest, is_shared: &[bool]) -> u64 {
    let mut digest = DefaultHasher::new();
    step.dims.hash(&mut digest);
    for (input, _) in step.inputs.iter().zip(is_shared).filter(|(_, is_shared)| **is_shared) {
        if let StepInputValue::Host(memory) = input {
            memory.bytes().hash(&mut digest);
        }
    }
    digest.finish()
}
