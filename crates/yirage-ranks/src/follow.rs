//! A rank that follows: its device does what rank 0 says, in that order.

use crate::group::{RankGroup, RankGroupError};
use crate::leader::RankOpening;
use crate::message::{PlanLoad, RankCommand, RankInput};
use crate::role::RankRole;
use crate::stage_device::{memory_bytes, step_bytes};
use crate::tell::{RankAnswer, stage_answer};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;
use yirage_comm::CommError;
use yirage_hal::{
    Bindings, Device, Fence, HalError, KvCacheHandle, OutputHandle, Program, SharedArena, StepInputValue, StepOutputs,
    StepRequest, WeightHandle, WeightSink,
};
use yirage_plan::{VerifiedPlan, WeightPlan, text};

/// Opens the device of a rank as rank 0 says.
pub type RankOpener<'a> = &'a dyn Fn(RankOpening<'_>) -> Result<Arc<dyn Device>, HalError>;

/// Does what rank 0 says until it says that there is nothing more to do; `open` opens this rank's device.
///
/// # Errors
/// What ends a group: rank 0 that is gone, ranks that do not come to a collective, and a step that failed here.
pub fn follow(group: &Arc<RankGroup>, open: RankOpener<'_>) -> Result<(), RankGroupError> {
    let mut follower = Follower::default();
    loop {
        let message = match follower.role {
            RankRole::Shard => group.hear()?,
            RankRole::Stage => group.hear_one(0)?,
        };
        let unreadable = |why: String| RankGroupError::Comm(CommError::Transport { call: "a message", why });
        for command in RankCommand::read_all(&message).map_err(unreadable)? {
            if command == RankCommand::End {
                return Ok(());
            }
            let Some(done) = follower.obey(command, open) else { continue };
            match follower.role {
                RankRole::Shard => drop(group.answer(&done.map(drop))?),
                RankRole::Stage => group.tell_one(&stage_answer(done), 0)?,
            }
        }
    }
}

/// What rank 0 has had made, by the numbers that it has given.
struct Follower {
    role: RankRole,
    device: Option<Arc<dyn Device>>,
    /// Weights that are not finished, or why they cannot be.
    sinks: HashMap<u64, Result<Box<dyn WeightSink>, HalError>>,
    weights: HashMap<u64, WeightHandle>,
    kv_caches: HashMap<u64, KvCacheHandle>,
    arenas: HashMap<u64, SharedArena>,
    programs: HashMap<u64, Box<dyn Program>>,
    outputs: HashMap<u64, Result<OutputHandle, HalError>>,
}

impl Default for Follower {
    fn default() -> Follower {
        Follower {
            role: RankRole::Shard,
            device: None,
            sinks: HashMap::new(),
            weights: HashMap::new(),
            kv_caches: HashMap::new(),
            arenas: HashMap::new(),
            programs: HashMap::new(),
            outputs: HashMap::new(),
        }
    }
}

fn unknown(what: &str, id: u64) -> HalError {
    HalError::Load(format!("there is no {what} {id} on this rank"))
}

impl Follower {
    fn device(&self) -> Result<Arc<dyn Device>, HalError> {
        self.device.clone().ok_or_else(|| HalError::Load("no device was opened on this rank".into()))
    }

    /// Does what is told: what it gives, where that is waited for.
    fn obey(&mut self, command: RankCommand, open: RankOpener<'_>) -> Option<Result<Vec<u8>, HalError>> {
        let nothing = |done: RankAnswer| Some(done.map(|()| Vec::new()));
        match command {
            RankCommand::Open { backend, ordinal, options } => {
                let opening = RankOpening { role: self.role, backend: &backend, ordinal, options: &options };
                nothing(open(opening).map(|device| self.device = Some(device)))
            }
            // Whoever has a plan of its own is asked what pieces it takes.
            RankCommand::Weight { id, entry } if self.role == RankRole::Stage => {
                Some(self.weight(&entry).map(|sink| {
                    let step = sink.row_step() as u64;
                    self.sinks.insert(id, Ok(sink));
                    step.to_le_bytes().to_vec()
                }))
            }
            RankCommand::Finish { weight } => nothing(self.finish(weight)),
            RankCommand::KvCache { id, block, k_width, blocks } => {
                nothing(self.kv_cache(id, &block, k_width, blocks as usize))
            }
            RankCommand::Load(load) => nothing(self.load(*load)),
            RankCommand::Submit { program, kind, dims, inputs, reads } => {
                let reads = reads.into_iter().map(|index| index as usize).collect();
                let step = self.inputs(inputs).map(|inputs| StepRequest { kind, dims, inputs, reads });
                Some(step.and_then(|step| self.run(program, step)))
            }
            RankCommand::Memory => Some(self.device().map(|device| memory_bytes(&device.memory()))),
            RankCommand::ReadBlocks { cache, blocks } => {
                let cache = self.kv_caches.get(&cache).ok_or_else(|| unknown("cache", cache));
                Some(cache.and_then(|cache| self.device()?.read_kv_blocks(cache, &blocks)))
            }
            RankCommand::WriteBlocks { cache, blocks, contents } => {
                let cache = self.kv_caches.get(&cache).ok_or_else(|| unknown("cache", cache));
                nothing(cache.and_then(|cache| self.device()?.write_kv_blocks(cache, &blocks, &contents)))
            }
            silent => {
                self.quietly(silent);
                None
            }
        }
    }

    /// What nobody waits for: an error of it is told where what is made is used.
    fn quietly(&mut self, command: RankCommand) {
        match command {
            RankCommand::Weight { id, entry } => {
                let sink = self.weight(&entry);
                self.sinks.insert(id, sink);
            }
            RankCommand::Rows { weight, first_row, bytes } => {
                let Some(slot) = self.sinks.get_mut(&weight) else { return };
                let written = slot.as_mut().map(|sink| sink.write_rows(first_row as usize, &bytes));
                if let Ok(Err(error)) = written {
                    *slot = Err(error);
                }
            }
            RankCommand::Output { id, program, index } => {
                let program = self.programs.get(&program).ok_or_else(|| unknown("program", program));
                self.outputs.insert(id, program.and_then(|program| program.output_handle(index as usize)));
            }
            RankCommand::Drop { id } => self.forget(id),
            RankCommand::BecomeStage => self.role = RankRole::Stage,
            _ => {}
        }
    }

    fn forget(&mut self, id: u64) {
        self.sinks.remove(&id);
        self.weights.remove(&id);
        self.kv_caches.remove(&id);
        self.arenas.remove(&id);
        self.programs.remove(&id);
        self.outputs.remove(&id);
    }

    fn weight(&self, entry: &str) -> Result<Box<dyn WeightSink>, HalError> {
        let plan = WeightPlan::parse(entry).map_err(|error| HalError::Load(error.to_string()))?;
        let entry = plan.entries.first().ok_or_else(|| HalError::Load("a weight without an entry".into()))?;
        self.device()?.weight(entry)
    }

    fn finish(&mut self, id: u64) -> RankAnswer {
        let sink = self.sinks.remove(&id).unwrap_or_else(|| Err(unknown("weight", id)))?;
        self.weights.insert(id, sink.finish()?);
        Ok(())
    }

    fn kv_cache(&mut self, id: u64, block: &str, k_width: u32, blocks: usize) -> RankAnswer {
        let block = yirage_ir::text::parse_type(block).map_err(|error| HalError::Load(error.to_string()))?;
        self.kv_caches.insert(id, self.device()?.kv_cache(&block, k_width, blocks)?);
        Ok(())
    }

    fn load(&mut self, load: PlanLoad) -> RankAnswer {
        let device = self.device()?;
        let plan = text::parse(&load.plan).map_err(|error| HalError::Load(error.to_string()))?;
        let plan = VerifiedPlan::new(plan, &device.target()).map_err(|error| HalError::Load(error.to_string()))?;
        let arena = self.arenas.entry(load.arena).or_default().clone();
        let mut bindings = Bindings { arena, kernel_variant: load.variant, ..Bindings::default() };
        for (name, id) in load.weights {
            let weight = self.weights.get(&id).ok_or_else(|| unknown("weight", id))?;
            bindings.weights.insert(name, weight.clone());
        }
        for (name, id) in load.kv_caches {
            let cache = self.kv_caches.get(&id).ok_or_else(|| unknown("cache", id))?;
            bindings.kv_caches.insert(name, cache.clone());
        }
        self.programs.insert(load.id, device.load(&plan, &bindings)?);
        Ok(())
    }

    fn inputs(&self, inputs: Vec<RankInput>) -> Result<Vec<StepInputValue>, HalError> {
        let value = |input| match input {
            RankInput::Host(record) => Ok(StepInputValue::Host(Arc::new(record))),
            RankInput::Resident(id) => {
                let output = self.outputs.get(&id).cloned().unwrap_or_else(|| Err(unknown("output", id)));
                output.map(StepInputValue::Resident)
            }
        };
        inputs.into_iter().map(value).collect()
    }

    fn run(&mut self, program: u64, step: StepRequest) -> Result<Vec<u8>, HalError> {
        let program = self.programs.get_mut(&program).ok_or_else(|| unknown("program", program))?;
        let began = Instant::now();
        let StepOutputs { outputs, device_time } = program.submit(step).and_then(Fence::wait)?;
        Ok(step_bytes(device_time.unwrap_or_else(|| began.elapsed()), &outputs))
    }
}
