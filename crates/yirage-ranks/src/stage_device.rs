//! The device of another process as rank 0 has it: one stage of a pipeline.

use crate::leader::RankOpening;
use crate::message::{PlanLoad, RankCommand, RankInput};
use crate::stage_channel::{StageChannel, StageQuestion};
use crate::{LocalRanks, RankGroup, RankWatch};
use std::sync::Arc;
use std::time::Duration;
use yirage_hal::{
    Bindings, Device, DeviceInfo, DevicePipeline, Fence, HalError, KvCacheHandle, Limit, MemoryReport, OutputHandle,
    Pending, PoolBytes, Program, Record, StepInputValue, StepOutputs, StepRequest, WeightHandle, WeightSink,
};
use yirage_ir::{Format, Type};
use yirage_plan::{Precision, Target, VerifiedPlan, WeightEntry, WeightPlan, text};

/// A stage whose device is another rank's.
pub struct StageOpening<'a> {
    /// How the rank opens its device.
    pub opening: RankOpening<'a>,
    /// A device that was opened so here: what it says of itself holds for both, or plans are refused there.
    pub like: Arc<dyn Device>,
}

/// A pipeline whose first stage is this process's device, and whose others are those of the other ranks of a group, in their
/// order, which [`follow`](crate::follow) this one. `processes` are those of the other ranks, where this process has started
/// them. What becomes of them is told by the second value.
///
/// # Errors
/// [`HalError::Load`] for other ranks than there are stages; what a rank says of its own device, and where the ranks do not
/// come.
pub fn lead_stages(
    first: Arc<dyn Device>,
    others: Vec<StageOpening<'_>>,
    group: Arc<RankGroup>,
    processes: Option<LocalRanks>,
) -> Result<(DevicePipeline, RankWatch), HalError> {
    let ranks = group.ranks() as usize;
    let channel = StageChannel::new(group, processes)?;
    if others.len() + 1 != ranks {
        return Err(HalError::Load(format!("{} stages for {ranks} ranks", others.len() + 1)));
    }
    // They open their devices at the same time.
    let open = |(rank, stage): (usize, &StageOpening<'_>)| {
        let RankOpening { backend, ordinal, options, .. } = stage.opening;
        channel.ask(rank, &RankCommand::Open { backend: backend.into(), ordinal, options: options.clone() })
    };
    let asked = (1..ranks).zip(&others).map(open).collect::<Result<Vec<_>, _>>()?;
    let mut stages = vec![first];
    for ((rank, question), StageOpening { like, .. }) in (1..ranks).zip(asked).zip(others) {
        channel.answer(rank, question)?;
        stages.push(Arc::new(StageDevice { channel: channel.clone(), rank, like }));
    }
    Ok((DevicePipeline::new(stages)?, channel.watch()))
}

/// The device of another rank.
struct StageDevice {
    channel: Arc<StageChannel>,
    rank: usize,
    like: Arc<dyn Device>,
}

/// Something that the rank has, by its number. Dropped, it forgets it.
struct Held {
    channel: Arc<StageChannel>,
    rank: usize,
    id: u64,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.channel.before_next(self.rank, &RankCommand::Drop { id: self.id });
    }
}

impl StageDevice {
    fn hold(&self, id: u64) -> Held {
        Held { channel: self.channel.clone(), rank: self.rank, id }
    }

    fn does(&self, command: &RankCommand) -> Result<Vec<u8>, HalError> {
        self.channel.does(self.rank, command)
    }

    /// Whether something is held by this rank.
    fn holds(&self, held: &Held) -> bool {
        held.rank == self.rank && Arc::ptr_eq(&held.channel, &self.channel)
    }

    /// The number of a cache.
    fn cache(&self, cache: &KvCacheHandle) -> Result<u64, HalError> {
        let held = cache.0.downcast_ref::<Held>().filter(|held| self.holds(held));
        held.map(|held| held.id).ok_or_else(|| HalError::Load("a cache of another device".into()))
    }
}

impl Device for StageDevice {
    fn info(&self) -> &DeviceInfo {
        self.like.info()
    }

    fn target(&self) -> Target {
        self.like.target()
    }

    /// Nothing where the rank does not answer, which the next step tells.
    fn memory(&self) -> MemoryReport {
        let read = |bytes: Vec<u8>| {
            let mut numbers = bytes.chunks_exact(8).map(|b| u64::from_le_bytes(b.try_into().unwrap_or_default()));
            let mut pool = || Some(PoolBytes { used: numbers.next()?, peak: numbers.next()? });
            Some(MemoryReport { weights: pool()?, cache: pool()?, arena: pool()?, workspace: pool()? })
        };
        self.does(&RankCommand::Memory).ok().and_then(read).unwrap_or_default()
    }

    fn weight_bytes(&self, entry: &WeightEntry) -> Result<u64, HalError> {
        self.like.weight_bytes(entry)
    }

    fn kv_block_bytes(&self, block: &Type, k_width: u32) -> Result<u64, HalError> {
        self.like.kv_block_bytes(block, k_width)
    }

    fn weight(&self, entry: &WeightEntry) -> Result<Box<dyn WeightSink>, HalError> {
        let id = self.channel.id();
        let entry = WeightPlan { entries: vec![entry.clone()] }.print();
        let begun = self.does(&RankCommand::Weight { id, entry })?;
        let step = <[u8; 8]>::try_from(&begun[..]).ok().and_then(|step| usize::try_from(u64::from_le_bytes(step)).ok());
        let none = || HalError::Device(format!("rank {} has not said what pieces of a weight it takes", self.rank));
        Ok(Box::new(StageSink { held: self.hold(id), row_step: step.filter(|&step| step > 0).ok_or_else(none)? }))
    }

    fn kv_cache(&self, block: &Type, k_width: u32, blocks: usize) -> Result<KvCacheHandle, HalError> {
        let id = self.channel.id();
        self.does(&RankCommand::KvCache { id, block: block.to_string(), k_width, blocks: blocks as u64 })?;
        Ok(KvCacheHandle(Arc::new(self.hold(id))))
    }

    fn read_kv_blocks(&self, cache: &KvCacheHandle, blocks: &[u32]) -> Result<Vec<u8>, HalError> {
        self.does(&RankCommand::ReadBlocks { cache: self.cache(cache)?, blocks: blocks.to_vec() })
    }

    fn write_kv_blocks(&self, cache: &KvCacheHandle, blocks: &[u32], contents: &[u8]) -> Result<(), HalError> {
        let (cache, blocks, contents) = (self.cache(cache)?, blocks.to_vec(), contents.to_vec());
        self.does(&RankCommand::WriteBlocks { cache, blocks, contents }).map(drop)
    }

    fn load(&self, plan: &VerifiedPlan, bindings: &Bindings) -> Result<Box<dyn Program>, HalError> {
        let arena = bindings
            .arena
            .memory(|known: &Held| self.holds(known), || Ok::<_, HalError>(self.hold(self.channel.id())))?;
        let number = |name: &String, held: Option<&Held>| {
            let foreign = || HalError::Load(format!("`{name}` is bound to memory of another device"));
            let held = held.filter(|held| self.holds(held)).ok_or_else(foreign)?;
            Ok::<_, HalError>((name.clone(), held.id))
        };
        let (weights, caches) = (bindings.weights.iter(), bindings.kv_caches.iter());
        let load = PlanLoad {
            id: self.channel.id(),
            arena: arena.id,
            variant: bindings.kernel_variant.clone(),
            weights: weights.map(|(name, of)| number(name, of.0.downcast_ref())).collect::<Result<_, _>>()?,
            kv_caches: caches.map(|(name, of)| number(name, of.0.downcast_ref())).collect::<Result<_, _>>()?,
            plan: text::print(plan),
        };
        let held = self.hold(load.id);
        self.does(&RankCommand::Load(Box::new(load)))?;
        Ok(Box::new(StageProgram { held, _arena: arena }))
    }

    fn matmul_limit(&self, precision: Precision, format: Format) -> Limit {
        self.like.matmul_limit(precision, format)
    }
}

/// Gives the rank the rows of a weight.
struct StageSink {
    held: Held,
    row_step: usize,
}

impl WeightSink for StageSink {
    fn row_step(&self) -> usize {
        self.row_step
    }

    fn write_rows(&mut self, first_row: usize, bytes: &[u8]) -> Result<(), HalError> {
        let Held { channel, rank, id } = &self.held;
        let rows = RankCommand::Rows { weight: *id, first_row: first_row as u64, bytes: bytes.to_vec() };
        channel.tell(*rank, &rows)
    }

    fn finish(self: Box<Self>) -> Result<WeightHandle, HalError> {
        let Held { channel, rank, id } = &self.held;
        channel.does(*rank, &RankCommand::Finish { weight: *id })?;
        Ok(WeightHandle(Arc::new(self.held)))
    }
}

/// A plan on the rank.
struct StageProgram {
    held: Held,
    _arena: Arc<Held>,
}

impl Program for StageProgram {
    fn submit(&mut self, step: StepRequest) -> Result<Fence, HalError> {
        let Held { channel, rank, id } = &self.held;
        let input = |value: StepInputValue| match value {
            StepInputValue::Host(memory) => Ok(RankInput::Host(Record::of(memory.bytes()))),
            StepInputValue::Resident(output) => {
                let held = output.0.downcast_ref::<Held>();
                let held = held.filter(|held| held.rank == *rank && Arc::ptr_eq(&held.channel, channel));
                let foreign = || HalError::Step("a step input's value lies on another device".into());
                held.map(|held| RankInput::Resident(held.id)).ok_or_else(foreign)
            }
        };
        let inputs = step.inputs.into_iter().map(input).collect::<Result<_, _>>()?;
        let reads: Vec<u64> = step.reads.iter().map(|&index| index as u64).collect();
        let outputs = reads.len();
        let command = RankCommand::Submit { program: *id, kind: step.kind, dims: step.dims, inputs, reads };
        let question = Some(channel.ask(*rank, &command)?);
        Ok(Fence::Pending(Box::new(StageStep { channel: channel.clone(), rank: *rank, question, outputs })))
    }

    fn output_handle(&self, index: usize) -> Result<OutputHandle, HalError> {
        let Held { channel, rank, id } = &self.held;
        let output = Held { channel: channel.clone(), rank: *rank, id: channel.id() };
        let command = RankCommand::Output { id: output.id, program: *id, index: index as u64 };
        channel.before_next(*rank, &command);
        Ok(OutputHandle(Arc::new(output)))
    }

    /// The rank says how long it has computed.
    fn has_device_times(&self) -> bool {
        true
    }
}

/// A step that the rank was asked to run.
struct StageStep {
    channel: Arc<StageChannel>,
    rank: usize,
    /// None once the answer is taken.
    question: Option<StageQuestion>,
    outputs: usize,
}

impl Pending for StageStep {
    fn is_done(&self) -> bool {
        false
    }

    fn wait(mut self: Box<Self>) -> Result<StepOutputs, HalError> {
        let question = self.question.take().ok_or_else(|| HalError::Step("a step that was waited for".into()))?;
        let given = self.channel.answer(self.rank, question)?;
        let cut = || HalError::Device(format!("rank {} has cut off the outputs of a step", self.rank));
        step_outputs(&given, self.outputs).ok_or_else(cut)
    }
}

impl Drop for StageStep {
    fn drop(&mut self) {
        if let Some(question) = self.question.take() {
            self.channel.forget(self.rank, question);
        }
    }
}

/// What a stage gives of a step: how long it took, in nanoseconds, and each output behind its length.
pub(crate) fn step_bytes(took: Duration, outputs: &[Record]) -> Vec<u8> {
    use yirage_hal::HostMemory;
    let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
    let mut bytes = nanoseconds.to_le_bytes().to_vec();
    for output in outputs {
        bytes.extend_from_slice(&(output.bytes().len() as u64).to_le_bytes());
        bytes.extend_from_slice(output.bytes());
    }
    bytes
}

/// The outputs of a step; none where they are cut off.
fn step_outputs(mut bytes: &[u8], count: usize) -> Option<StepOutputs> {
    let number = |bytes: &mut &[u8]| {
        let (first, rest) = bytes.split_first_chunk::<8>()?;
        *bytes = rest;
        Some(u64::from_le_bytes(*first))
    };
    let took = Duration::from_nanos(number(&mut bytes)?);
    let mut outputs = Vec::with_capacity(count);
    for _ in 0..count {
        let len = usize::try_from(number(&mut bytes)?).ok()?;
        let (output, rest) = bytes.split_at_checked(len)?;
        outputs.push(Record::of(output));
        bytes = rest;
    }
    bytes.is_empty().then_some(StepOutputs { outputs, device_time: Some(took) })
}

/// What memory a device holds, as bytes.
pub(crate) fn memory_bytes(memory: &MemoryReport) -> Vec<u8> {
    let pools = [memory.weights, memory.cache, memory.arena, memory.workspace];
    pools.into_iter().flat_map(|pool| [pool.used, pool.peak]).flat_map(u64::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_a_step_come_back_or_are_seen_to_be_cut_off() {
        let outputs = vec![Record::of(&[1u8, 2, 3]), Record::default(), Record::of(&[1.5f32])];
        let bytes = step_bytes(Duration::from_micros(7), &outputs);
        let wanted = StepOutputs { outputs, device_time: Some(Duration::from_micros(7)) };
        assert_eq!(step_outputs(&bytes, 3), Some(wanted));
        assert!((0..bytes.len()).all(|len| step_outputs(&bytes[..len], 3).is_none()));
        assert!(step_outputs(&bytes, 2).is_none() && step_outputs(&bytes, 4).is_none());
    }
}
