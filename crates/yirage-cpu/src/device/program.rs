//! A plan loaded on the CPU: kernels bound to their operands, and the task programs that walk them.

use crate::bind::{Binder, Failed, Memory, Output, Run, shared_bytes, slots};
use crate::cuts::Cuts;
use crate::kernels::{self, BoundKernel};
use crate::memory::{HugeBuf, OutOfMemory, Supply};
use crate::shared::{Booked, Purpose, Shared, book};
use crate::walk::{Tasks, Walker, Work};
use std::sync::Arc;
use yirage_hal::{Bindings, HalError, Program, Slot, Values};
use yirage_ir::{DType, Dims, Source, Type};
use yirage_plan::{ExecutorKind, Plan, Task};

/// What parts of memory of different workers are multiples of.
const PAGE: usize = 4096;

/// The program.
pub(super) struct CpuProgram {
    shared: Arc<Shared>,
    /// The largest sizes of a step.
    bucket: Dims,
    /// The plan's slots by name, in order.
    slots: Vec<(String, Type)>,
    /// One for each step.
    kernels: Vec<Box<dyn BoundKernel>>,
    walkers: Vec<(ExecutorKind, Walker)>,
    cuts: Cuts,
    memory: Memory,
    outputs: Vec<Output>,
    _booked: Booked,
}

impl CpuProgram {
    pub(super) fn new(shared: &Arc<Shared>, plan: &Plan, bindings: &Bindings) -> Result<CpuProgram, HalError> {
        let mut binder = Binder::new(shared, plan, bindings)?;
        let mut bound = Vec::new();
        for (s, step) in plan.steps.iter().enumerate() {
            if s > 0 && plan.steps[s - 1].phase != step.phase {
                binder.scratch.next_phase();
            }
            bound.push(kernels::bind(&mut binder, step.node as usize, &plan.kernels[step.kernel as usize].name)?);
        }
        let slots = plan.graph.inputs_of(Source::Slot).map(|id| plan.graph.value(id));
        let slots = slots.map(|value| (value.name.clone(), value.ty.clone())).collect();
        let walkers = plan.programs.iter().map(|p| (p.kind, Walker::new(plan, p))).collect();
        let outputs = binder.outputs()?;
        let held = |bytes| memory(shared_bytes(shared.supply, bytes));
        // Parts of a page each, so that workers do not share lines or what is fetched beside them.
        let worker_bytes = binder.worker_bytes().checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
        let memory = Memory {
            arena: held(plan.arena as usize)?,
            scratch: held(binder.scratch.peak())?,
            workers: held(worker_bytes.saturating_mul(shared.pool.count()))?,
            worker_bytes,
        };
        let bytes = memory.arena.len() + memory.scratch.len() + memory.workers.len();
        let booked = book(shared, Purpose::Arena, bytes as u64);
        let (shared, cuts, bucket) = (shared.clone(), binder.cuts, plan.bucket);
        Ok(CpuProgram { shared, bucket, slots, kernels: bound, walkers, cuts, memory, outputs, _booked: booked })
    }
}

fn memory(bytes: usize) -> Result<HugeBuf, HalError> {
    HugeBuf::zeroed(bytes).map_err(|e| out_of_memory(bytes, &e))
}

fn out_of_memory(bytes: usize, why: &OutOfMemory) -> HalError {
    HalError::OutOfMemory { pool: "arena", wanted: bytes as u64, detail: why.to_string() }
}

impl Program for CpuProgram {
    fn run(&mut self, kind: ExecutorKind, dims: &Dims, given: &[Slot<'_>]) -> Result<(), HalError> {
        let words = slots(&self.slots, &self.bucket, dims, given)?;
        let staged = staged(self.shared.supply, &words)?;
        let words = staged.as_ref().map_or(words, |staged| staged.iter().map(as_words).collect());
        self.cuts.prepare(dims, &words, self.shared.pool.count())?;
        let failed = Failed::default();
        let run = Run::new(self.shared.isa, dims, &self.cuts, &words, &self.memory, &failed);
        // Waking the others costs more than what one worker does anyway.
        let alone = self.kernels.iter().all(|kernel| kernel.workers(dims) <= 1);
        let missing = || HalError::Step(format!("the plan was loaded without a program for the executor `{kind}`"));
        let (_, walker) = self.walkers.iter_mut().find(|(k, _)| *k == kind).ok_or_else(missing)?;
        let step = Step { kernels: &self.kernels, run };
        let walked = walker.run(&self.shared.pool, alone, &step);
        walked.map_err(|e| HalError::Device(e.to_string()))?;
        failed.end()
    }

    fn output(&self, index: usize, dims: &Dims) -> Result<Values<'_>, HalError> {
        let missing = || HalError::Step(format!("output {index} is not there, or is a cache state"));
        let (spot, ty) = self.outputs.get(index).and_then(Option::as_ref).ok_or_else(missing)?;
        let (first, elems) = (spot.first(&self.memory.arena), ty.elems(dims));
        // SAFETY: `yirage_plan::VerifiedPlan` proves that the whole value lies inside the arena, 64-byte aligned; nothing runs
        // meanwhile.
        unsafe {
            match ty.dtype {
                DType::F32 => Ok(Values::F32(std::slice::from_raw_parts(first.cast(), elems))),
                DType::I32 => Ok(Values::I32(std::slice::from_raw_parts(first.cast(), elems))),
                other => Err(HalError::Step(format!("output {index} is {other}, which does not leave the device"))),
            }
        }
    }
}

/// On a guarded device, the words of each slot in memory of their own.
fn staged(supply: Supply, slots: &[&[i32]]) -> Result<Option<Vec<HugeBuf>>, HalError> {
    if supply == Supply::Plain {
        return Ok(None);
    }
    let copy = |words: &&[i32]| {
        let mut own = supply.zeroed(size_of_val(*words), align_of::<i32>()).map_err(|e| out_of_memory(e.wanted, &e))?;
        // SAFETY: the buffer was made for these words, at a multiple of four; any bytes are words.
        unsafe { own.as_mut_slice().align_to_mut::<i32>().1 }.copy_from_slice(words);
        Ok(own)
    };
    slots.iter().map(copy).collect::<Result<_, _>>().map(Some)
}

/// The words of a buffer made by [`staged`].
fn as_words(buf: &HugeBuf) -> &[i32] {
    // SAFETY: as there.
    unsafe { buf.as_slice().align_to::<i32>().1 }
}

/// The kernels of a program in one run.
struct Step<'a> {
    kernels: &'a [Box<dyn BoundKernel>],
    run: Run<'a>,
}

impl Tasks for Step<'_> {
    unsafe fn run(&self, task: &Task, work: Work<'_>) {
        // SAFETY: the caller's contract.
        unsafe { self.kernels[task.step as usize].run(task.stage, &self.run, work) }
    }

    fn waiting(&self, task: &Task, work: Work<'_>, look: u32) {
        self.kernels[task.step as usize].waiting(task.stage, &self.run, work, look);
    }
}
