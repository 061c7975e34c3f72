//! The device of rank 0, as an engine has it: what is done on it is done on the devices of all ranks.

use crate::channel::{RankChannel, RankWatch};
use crate::group::RankGroup;
use crate::local::LocalRanks;
use crate::message::{PlanLoad, RankCommand, RankInput};
use crate::role::RankRole;
use std::sync::Arc;
use yirage_hal::{
    Bindings, Device, DeviceInfo, Fence, HalError, KvCacheHandle, Limit, LimitProbe, MemoryReport, OpenOptions,
    OutputHandle, Profiler, Program, Record, SharedArena, StepInputValue, StepOutputs, StepRequest, WeightHandle,
    WeightSink,
};
use yirage_ir::{Format, Type};
use yirage_plan::{Precision, Target, VerifiedPlan, WeightEntry, WeightPlan, text};

/// What a device is opened by: its backend, its number, and how.
#[derive(Clone, Copy, Debug)]
pub struct RankOpening<'a> {
    /// What the rank is to have of a model.
    pub role: RankRole,
    /// The backend's name.
    pub backend: &'a str,
    /// The number of the device.
    pub ordinal: u32,
    /// How it is opened.
    pub options: &'a OpenOptions,
}

/// Rank 0 of a group whose other ranks [`follow`](crate::follow) it.
pub struct RankLeader {
    channel: Arc<RankChannel>,
}

/// Something that every rank has, by its number. Dropped, all forget it.
struct Shared<T> {
    channel: Arc<RankChannel>,
    id: u64,
    own: T,
}

impl<T> Shared<T> {
    fn new(channel: &Arc<RankChannel>, id: u64, own: T) -> Shared<T> {
        Shared { channel: channel.clone(), id, own }
    }

    fn is_of(&self, channel: &Arc<RankChannel>) -> bool {
        Arc::ptr_eq(&self.channel, channel)
    }
}

impl<T> Drop for Shared<T> {
    fn drop(&mut self) {
        self.channel.before_next(&RankCommand::Drop { id: self.id });
    }
}

impl RankLeader {
    /// Has all other ranks open a device like this one, which was opened so. `processes` are those of the other ranks, where
    /// this process has started them.
    ///
    /// # Errors
    /// What a rank says of its own, and where the ranks do not come.
    pub fn new(
        device: Arc<dyn Device>,
        opening: RankOpening<'_>,
        group: Arc<RankGroup>,
        processes: Option<LocalRanks>,
    ) -> Result<RankLeader, HalError> {
        let channel = RankChannel::new(device, group, processes)?;
        channel.all_do(&RankCommand::Open {
            backend: opening.backend.into(),
            ordinal: opening.ordinal,
            options: opening.options.clone(),
        })?;
        Ok(RankLeader { channel })
    }

    /// What tells of the end of the group, also while nothing is computed.
    pub fn watch(&self) -> RankWatch {
        self.channel.watch()
    }

    fn device(&self) -> &dyn Device {
        &*self.channel.device
    }
}

impl Device for RankLeader {
    fn info(&self) -> &DeviceInfo {
        self.device().info()
    }

    fn target(&self) -> Target {
        self.device().target()
    }

    fn memory(&self) -> MemoryReport {
        self.device().memory()
    }

    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError> {
        self.device().weight_bytes(entry)
    }

    fn kv_block_bytes(&self, block: &Type, k_width: u32) -> Result<u64, HalError> {
        self.device().kv_block_bytes(block, k_width)
    }

    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError> {
        let (own, id) = (self.device().weight(entry)?, self.channel.id());
        let line = WeightPlan { entries: vec![entry.clone()] }.print();
        self.channel.before_next(&RankCommand::Weight { id, entry: line });
        Ok(Box::new(LeaderSink { channel: self.channel.clone(), id, own }))
    }

    fn kv_cache(&self, block: &Type, k_width: u32, blocks: usize) -> Result<KvCacheHandle, HalError> {
        let (own, id) = (self.device().kv_cache(block, k_width, blocks)?, self.channel.id());
        let (text, count) = (block.to_string(), blocks as u64);
        self.channel.all_do(&RankCommand::KvCache { id, block: text, k_width, blocks: count })?;
        Ok(KvCacheHandle(Arc::new(Shared::new(&self.channel, id, own))))
    }

    fn load(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, HalError> {
        let (own, arena, mut load) = self.bindings(bindings)?;
        let program = self.device().load(plan, &own)?;
        load.plan = text::print(plan);
        let id = load.id;
        self.channel.all_do(&RankCommand::Load(Box::new(load)))?;
        let program = Shared::new(&self.channel, id, program);
        Ok(Box::new(LeaderProgram { program, _arena: arena }))
    }

    fn probe(&self, limit: Limit) -> Result<Box<dyn LimitProbe>, HalError> {
        self.device().probe(limit)
    }

    fn profile(&self, spans: usize) -> Result<Arc<Profiler>, HalError> {
        self.device().profile(spans)
    }

    fn matmul_limit(&self, precision: Precision, format: Format) -> Limit {
        self.device().matmul_limit(precision, format)
    }
}

impl RankLeader {
    /// What names stand for on this rank, and by number.
    fn bindings(&self, bindings: &Bindings) -> Result<(Bindings, Arc<Shared<SharedArena>>, PlanLoad), HalError> {
        let channel = &self.channel;
        let foreign = |name: &String| HalError::Load(format!("`{name}` is bound to memory of another device"));
        let arena = bindings.arena.memory(
            |known: &Shared<SharedArena>| known.is_of(channel),
            || Ok::<_, HalError>(Shared::new(channel, channel.id(), SharedArena::default())),
        )?;
        let variant = bindings.kernel_variant.clone();
        let mut own = Bindings { arena: arena.own.clone(), kernel_variant: variant.clone(), ..Bindings::default() };
        let (mut weights, mut kv_caches) = (Vec::new(), Vec::new());
        for (name, handle) in &bindings.weights {
            let weight = handle.0.downcast_ref::<Shared<WeightHandle>>().filter(|shared| shared.is_of(channel));
            let weight = weight.ok_or_else(|| foreign(name))?;
            own.weights.insert(name.clone(), weight.own.clone());
            weights.push((name.clone(), weight.id));
        }
        for (name, handle) in &bindings.kv_caches {
            let cache = handle.0.downcast_ref::<Shared<KvCacheHandle>>().filter(|shared| shared.is_of(channel));
            let cache = cache.ok_or_else(|| foreign(name))?;
            own.kv_caches.insert(name.clone(), cache.own.clone());
            kv_caches.push((name.clone(), cache.id));
        }
        let load = PlanLoad { id: channel.id(), arena: arena.id, variant, weights, kv_caches, plan: String::new() };
        Ok((own, arena, load))
    }
}

/// Gives all ranks the rows of a weight, of which each takes its own.
struct LeaderSink {
    channel: Arc<RankChannel>,
    id: u64,
    own: Box<dyn WeightSink>,
}

impl WeightSink for LeaderSink {
    fn row_step(&self) -> usize {
        self.own.row_step()
    }

    fn write_rows(&mut self, first_row: usize, bytes: &[u8]) -> Result<(), HalError> {
        let rows = RankCommand::Rows { weight: self.id, first_row: first_row as u64, bytes: bytes.to_vec() };
        self.channel.turn().tell(&rows)?;
        self.own.write_rows(first_row, bytes)
    }

    fn finish(self: Box<Self>) -> Result<WeightHandle, HalError> {
        let own = self.own.finish()?;
        self.channel.all_do(&RankCommand::Finish { weight: self.id })?;
        Ok(WeightHandle(Arc::new(Shared::new(&self.channel, self.id, own))))
    }
}

/// A plan on all ranks.
struct LeaderProgram {
    program: Shared<Box<dyn Program>>,
    _arena: Arc<Shared<SharedArena>>,
}

impl LeaderProgram {
    /// A step's inputs on this rank, and for the others.
    fn inputs(&self, given: &[StepInputValue]) -> Result<(Vec<StepInputValue>, Vec<RankInput>), HalError> {
        let (mut own, mut others) = (Vec::with_capacity(given.len()), Vec::with_capacity(given.len()));
        for input in given {
            match input {
                StepInputValue::Host(memory) => {
                    own.push(input.clone());
                    others.push(RankInput::Host(Record::of(memory.bytes())));
                }
                StepInputValue::Resident(output) => {
                    let output = output.0.downcast_ref::<Shared<OutputHandle>>();
                    let output = output.filter(|output| output.is_of(&self.program.channel));
                    let output =
                        output.ok_or_else(|| HalError::Step("a step input's value lies on another device".into()))?;
                    own.push(StepInputValue::Resident(output.own.clone()));
                    others.push(RankInput::Resident(output.id));
                }
            }
        }
        Ok((own, others))
    }
}

impl Program for LeaderProgram {
    /// Runs the step on all ranks; it is over when this returns.
    fn submit(&mut self, step: StepRequest) -> Result<Fence, HalError> {
        let (own, inputs) = self.inputs(&step.inputs)?;
        let channel = self.program.channel.clone();
        let mut turn = channel.turn();
        let (program, kind, dims) = (self.program.id, step.kind, step.dims);
        turn.tell(&RankCommand::Submit { program, kind, dims, inputs, reads: Vec::new() })?;
        let done = self.program.own.submit(StepRequest { inputs: own, ..step }).and_then(Fence::wait);
        let (done, outputs) = match done {
            Ok(outputs) => (Ok(()), outputs),
            Err(error) => (Err(error), StepOutputs::default()),
        };
        // Where the ranks have lost each other in the step, that is what all that follows says.
        match turn.answers(&done) {
            Err(HalError::Lost(_)) if done.is_err() => done.map(|()| Fence::Signalled(outputs)),
            answers => answers.map(|()| Fence::Signalled(outputs)),
        }
    }

    fn output_handle(&self, index: usize) -> Result<OutputHandle, HalError> {
        let Shared { channel, id: program, own, .. } = &self.program;
        let (own, id) = (own.output_handle(index)?, channel.id());
        channel.before_next(&RankCommand::Output { id, program: *program, index: index as u64 });
        Ok(OutputHandle(Arc::new(Shared::new(channel, id, own))))
    }
}
