//! A group: instruction by instruction, for the threads that come to each.

use super::InterpreterSettings;
use super::compute::{larger, smaller};
use super::fault::{KernelFault, KernelProblem};
use super::lanes::{LaneFault, LaneSet, LaneValues};
use super::memory::{Epochs, TrackedMemory};
use super::schedule::ThreadSchedule;
use crate::computation::{Computation, SubgroupFunction};
use crate::kernel::{ComputeKernel, Instruction};
use crate::place::{KernelMemory, Register};
use crate::scalar::ScalarType;
use crate::text::InstructionLine;

/// The groups of a launch, one after the other.
pub(super) struct GroupRun<'a> {
    kernel: &'a ComputeKernel,
    /// Buffers, and behind them what a group shares.
    memories: Vec<TrackedMemory<'a>>,
    values: LaneValues,
    /// All threads, in the order of the schedule where they run in step.
    threads: Vec<u16>,
    settings: InterpreterSettings,
    group: [u32; 3],
    epochs: Epochs,
    /// Instructions that may still be run.
    left: u64,
    /// Orders drawn so far.
    draws: u64,
}

impl<'a> GroupRun<'a> {
    pub(super) fn new(
        kernel: &'a ComputeKernel,
        memories: Vec<TrackedMemory<'a>>,
        settings: &InterpreterSettings,
    ) -> GroupRun<'a> {
        let in_step = match settings.schedule {
            ThreadSchedule::OneByOne(_) => ThreadSchedule::Ascending,
            schedule => schedule,
        };
        GroupRun {
            kernel,
            memories,
            values: LaneValues::new(kernel.registers.len(), kernel.variables.len(), kernel.threads),
            threads: in_step.order(u64::from(kernel.threads), 0).map(|thread| thread as u16).collect(),
            settings: *settings,
            group: [0; 3],
            epochs: Epochs { current: 0, of_group: 0 },
            left: settings.budget,
            draws: 0,
        }
    }

    /// Runs a group.
    pub(super) fn group(&mut self, group: [u32; 3]) -> Result<(), KernelFault> {
        self.group = group;
        let epoch = self.epochs.current + 1;
        self.epochs = Epochs { current: epoch, of_group: epoch };
        // A group costs something even where it does nothing.
        self.left = self.left.checked_sub(1).ok_or_else(|| KernelFault::Launch {
            kernel: self.kernel.name.clone(),
            why: format!("more than {} instructions", self.settings.budget),
        })?;
        let threads = std::mem::take(&mut self.threads);
        let done = self.body(&self.kernel.body, &threads);
        self.threads = threads;
        done
    }

    fn body(&mut self, body: &'a [Instruction], lanes: LaneSet<'_>) -> Result<(), KernelFault> {
        if lanes.len() <= 1 || !matches!(self.settings.schedule, ThreadSchedule::OneByOne(_)) {
            return body.iter().try_for_each(|instruction| self.instruction(instruction, lanes));
        }
        let mut rest = body;
        while !rest.is_empty() {
            let alone = rest.iter().position(meets).unwrap_or(rest.len());
            self.one_by_one(&rest[..alone], lanes)?;
            rest = &rest[alone..];
            if let Some((instruction, behind)) = rest.split_first() {
                self.instruction(instruction, lanes)?;
                rest = behind;
            }
        }
        Ok(())
    }

    /// Instructions at which no thread meets another.
    fn one_by_one(&mut self, body: &'a [Instruction], lanes: LaneSet<'_>) -> Result<(), KernelFault> {
        self.draws += 1;
        for at in self.settings.schedule.order(lanes.len() as u64, self.draws) {
            let lane = [lanes[at as usize]];
            body.iter().try_for_each(|instruction| self.instruction(instruction, &lane))?;
        }
        Ok(())
    }

    fn instruction(&mut self, instruction: &'a Instruction, lanes: LaneSet<'_>) -> Result<(), KernelFault> {
        self.spend(instruction, lanes)?;
        let done = match instruction {
            Instruction::Compute(register, computation) => self.compute(*register, *computation, lanes),
            Instruction::Declare(variable, value) | Instruction::Set(variable, value) => {
                self.values.set(*variable, *value, lanes);
                Ok(())
            }
            Instruction::Store { memory, at, value } => self.store(*memory, *at, *value, lanes),
            Instruction::Barrier => self.together(lanes).map(|()| self.epochs.current += 1),
            Instruction::If { condition, then, otherwise } => {
                let condition = self.values.of(*condition);
                let (yes, no): (Vec<u16>, Vec<u16>) =
                    lanes.iter().copied().partition(|&lane| condition[usize::from(lane)] != 0);
                if !yes.is_empty() {
                    self.body(then, &yes)?;
                }
                return if no.is_empty() { Ok(()) } else { self.body(otherwise, &no) };
            }
            Instruction::Loop { counter, from, to, step, body } => {
                return self.repeat(instruction, [*counter, *from, *to, *step], body, lanes);
            }
        };
        done.map_err(|fault| self.fault(instruction, fault))
    }

    /// Takes what an instruction costs these threads off the budget.
    fn spend(&mut self, instruction: &Instruction, lanes: LaneSet<'_>) -> Result<(), KernelFault> {
        let Some(left) = self.left.checked_sub(lanes.len() as u64) else {
            let lane = lanes.first().map_or(0, |&lane| usize::from(lane));
            let problem = KernelProblem::Budget(self.settings.budget);
            return Err(self.fault(instruction, LaneFault { lane, problem }));
        };
        self.left = left;
        Ok(())
    }

    fn repeat(
        &mut self,
        instruction: &Instruction,
        [counter, from, to, step]: [Register; 4],
        body: &'a [Instruction],
        lanes: LaneSet<'_>,
    ) -> Result<(), KernelFault> {
        self.values.map(counter, from, lanes, |from| from);
        let mut running = lanes.to_vec();
        loop {
            let (counters, ends) = (self.values.of(counter), self.values.of(to));
            running.retain(|&lane| counters[usize::from(lane)] < ends[usize::from(lane)]);
            if running.is_empty() {
                return Ok(());
            }
            // A round costs something even where it does nothing.
            self.spend(instruction, &running)?;
            self.body(body, &running)?;
            self.values.advance(counter, step, &running).map_err(|fault| self.fault(instruction, fault))?;
        }
    }

    fn compute(&mut self, to: Register, computation: Computation, lanes: LaneSet<'_>) -> Result<(), LaneFault> {
        let (size, values) = (self.settings.subgroup_size, &mut self.values);
        match computation {
            Computation::Const(value) => values.fill(to, value.bits, lanes),
            Computation::Thread => values.each(to, lanes, |thread| thread as u32),
            Computation::Group(axis) => values.fill(to, self.group[usize::from(axis)], lanes),
            Computation::SubgroupLane => values.each(to, lanes, |thread| thread as u32 % size),
            Computation::SubgroupSize => values.fill(to, size, lanes),
            Computation::Get(variable) => values.get(to, variable, lanes),
            Computation::Load(memory, at) => return self.load(to, memory, at, lanes),
            Computation::Unary(function, x) => values.unary(to, function, x, self.kernel.ty(x), lanes),
            Computation::Binary(function, a, b) => {
                return values.binary(to, function, [a, b], self.kernel.ty(a), lanes);
            }
            Computation::Select(condition, a, b) => values.select(to, condition, a, b, lanes),
            Computation::Convert(ty, x) => return values.convert(to, x, [self.kernel.ty(x), ty], lanes),
            Computation::Bitcast(_, x) => values.map(to, x, lanes, |x| x),
            Computation::UnpackHalf(word, high) => values.unpack_half(to, word, high, lanes),
            Computation::PackHalf(low, high) => values.pack_half(to, low, high, lanes),
            Computation::Subgroup(function, x) => return self.subgroup(to, function, x, lanes),
            Computation::SubgroupShuffle(x, lane) => return self.shuffle(to, x, lane, lanes),
        }
        Ok(())
    }

    fn memory(&self, memory: KernelMemory) -> usize {
        match memory {
            KernelMemory::Buffer(number) => number as usize,
            KernelMemory::Shared(number) => self.kernel.buffers.len() + number as usize,
        }
    }

    fn load(&mut self, to: Register, memory: KernelMemory, at: Register, lanes: LaneSet<'_>) -> Result<(), LaneFault> {
        let mut out = self.values.take(to);
        let (number, indices) = (self.memory(memory), self.values.of(at));
        let from = &mut self.memories[number];
        let done = lanes.iter().map(|&lane| usize::from(lane)).try_for_each(|lane| {
            let word = from.load(memory, indices[lane], lane, self.epochs);
            out[lane] = word.map_err(|problem| LaneFault { lane, problem })?;
            Ok(())
        });
        self.values.put(to, out);
        done
    }

    fn store(
        &mut self,
        memory: KernelMemory,
        at: Register,
        value: Register,
        lanes: LaneSet<'_>,
    ) -> Result<(), LaneFault> {
        let (number, indices, words) = (self.memory(memory), self.values.of(at), self.values.of(value));
        let to = &mut self.memories[number];
        lanes.iter().map(|&lane| usize::from(lane)).try_for_each(|lane| {
            let stored = to.store(memory, indices[lane], words[lane], lane, self.epochs);
            stored.map_err(|problem| LaneFault { lane, problem })
        })
    }

    /// All threads of the group are here.
    fn together(&self, lanes: LaneSet<'_>) -> Result<(), LaneFault> {
        let all = self.kernel.threads;
        if lanes.len() == all as usize {
            return Ok(());
        }
        let lane = lanes.first().map_or(0, |&lane| usize::from(lane));
        Err(LaneFault { lane, problem: KernelProblem::Diverged { here: lanes.len(), all } })
    }

    fn subgroup(
        &mut self,
        to: Register,
        function: SubgroupFunction,
        x: Register,
        lanes: LaneSet<'_>,
    ) -> Result<(), LaneFault> {
        self.together(lanes)?;
        let (ty, size) = (self.kernel.ty(x), self.settings.subgroup_size as usize);
        let join = |a, b| match function {
            SubgroupFunction::Add if ty == ScalarType::F32 => Ok((f32::from_bits(a) + f32::from_bits(b)).to_bits()),
            SubgroupFunction::Add => Ok(u32::wrapping_add(a, b)),
            SubgroupFunction::Max => larger(ty, a, b),
            SubgroupFunction::Min => smaller(ty, a, b),
        };
        let mut out = self.values.take(to);
        let parts = out.chunks_mut(size).zip(self.values.of(x).chunks(size)).enumerate();
        let mut done = Ok(());
        for (part, (out, values)) in parts {
            self.draws += 1;
            let mut in_order = self.settings.schedule.order(values.len() as u64, self.draws);
            let joined = in_order.try_fold(None, |sum, lane| {
                let value = values[lane as usize];
                sum.map_or(Ok(value), |sum| join(sum, value)).map(Some)
            });
            match joined {
                Ok(joined) => out.fill(joined.unwrap_or_default()),
                Err(problem) => done = Err(LaneFault { lane: part * size, problem }),
            }
        }
        self.values.put(to, out);
        done
    }

    fn shuffle(&mut self, to: Register, x: Register, lane: Register, lanes: LaneSet<'_>) -> Result<(), LaneFault> {
        self.together(lanes)?;
        let size = self.settings.subgroup_size;
        let mut out = self.values.take(to);
        let (values, wanted) = (self.values.of(x), self.values.of(lane));
        let done = out.iter_mut().enumerate().try_for_each(|(thread, out)| {
            let first = thread as u32 / size * size;
            let (lane, size) = (wanted[thread], size.min(self.kernel.threads - first));
            if lane >= size {
                return Err(LaneFault { lane: thread, problem: KernelProblem::Lane { lane, size } });
            }
            *out = values[(first + lane) as usize];
            Ok(())
        });
        self.values.put(to, out);
        done
    }

    fn fault(&self, instruction: &Instruction, fault: LaneFault) -> KernelFault {
        KernelFault::Thread {
            kernel: self.kernel.name.clone(),
            instruction: InstructionLine { kernel: self.kernel, instruction }.to_string(),
            thread: fault.lane as u32,
            group: self.group,
            problem: fault.problem,
        }
    }
}

/// Whether threads meet in it: at a barrier or in a subgroup.
fn meets(instruction: &Instruction) -> bool {
    match instruction {
        Instruction::Barrier
        | Instruction::Compute(_, Computation::Subgroup(..) | Computation::SubgroupShuffle(..)) => true,
        Instruction::Loop { body, .. } => body.iter().any(meets),
        Instruction::If { then, otherwise, .. } => then.iter().chain(otherwise).any(meets),
        Instruction::Compute(..) | Instruction::Declare(..) | Instruction::Set(..) | Instruction::Store { .. } => false,
    }
}
