//! A plan loaded on the CPU: kernels bound to their operands, and the task programs that walk them.

use crate::bind::{Binder, CpuResident, Failed, Memory, Output, Run, Slots, shared_bytes};
use crate::cuts::Cuts;
use crate::kernels::{self, BoundKernel};
use crate::memory::{HugeBuf, OutOfMemory};
use crate::shared::{Booked, Purpose, Shared, book};
use crate::walk::{Tasks, Walker, Work};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use yirage_hal::{Bindings, Fence, Finished, HalError, Program, Resident, Step};
use yirage_ir::{Dims, Source};
use yirage_plan::{ExecutorKind, Plan, Task};

/// What parts of memory of different workers are multiples of.
const PAGE: usize = 4096;

/// The program.
pub(super) struct CpuProgram {
    shared: Arc<Shared>,
    slots: Slots,
    /// One for each step.
    kernels: Vec<Box<dyn BoundKernel>>,
    walkers: Vec<(ExecutorKind, Walker)>,
    cuts: Cuts,
    memory: Arc<Memory>,
    outputs: Vec<Output>,
    /// Steps so far, which whoever was given an output looks at.
    steps: Arc<AtomicU64>,
    /// The sizes of the last one.
    last: Dims,
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
        Ok(CpuProgram {
            shared: shared.clone(),
            slots: Slots::new(plan.bucket, slots, shared),
            kernels: bound,
            walkers,
            cuts: binder.cuts,
            memory: Arc::new(memory),
            outputs,
            steps: Arc::default(),
            last: Dims::default(),
            _booked: booked,
        })
    }
}

fn memory(bytes: usize) -> Result<HugeBuf, HalError> {
    let out_of_memory =
        |e: OutOfMemory| HalError::OutOfMemory { pool: "arena", wanted: bytes as u64, detail: e.to_string() };
    HugeBuf::zeroed(bytes).map_err(out_of_memory)
}

impl Program for CpuProgram {
    /// Runs the step at once: the fence is signalled.
    fn submit(&mut self, step: Step) -> Result<Fence, HalError> {
        let shared = self.shared.clone();
        let turn = shared.turn();
        let held = self.slots.held(&step.dims, &step.slots, &self.memory, &turn)?;
        let slots: Vec<&[u8]> = held.iter().map(|slot| slot.bytes(&turn)).collect();
        self.steps.fetch_add(1, Ordering::Relaxed);
        self.last = step.dims;
        self.run(step.kind, &step.dims, &slots)?;
        let outputs = step.reads.iter().map(|&index| Ok(self.left(index)?.record(&turn)));
        Ok(Fence::Signalled(Finished { outputs: outputs.collect::<Result<_, HalError>>()? }))
    }

    fn resident(&self, index: usize) -> Result<Resident, HalError> {
        Ok(Resident(Arc::new(self.left(index)?)))
    }
}

impl CpuProgram {
    fn run(&mut self, kind: ExecutorKind, dims: &Dims, slots: &[&[u8]]) -> Result<(), HalError> {
        self.cuts.prepare(dims, slots, self.shared.pool.count())?;
        let failed = Failed::default();
        let run = Run::new(self.shared.isa, dims, &self.cuts, slots, &self.memory, &failed);
        // Waking the others costs more than what one worker does anyway.
        let alone = self.kernels.iter().all(|kernel| kernel.workers(dims) <= 1);
        let missing = || HalError::Step(format!("the plan was loaded without a program for the executor `{kind}`"));
        let (_, walker) = self.walkers.iter_mut().find(|(k, _)| *k == kind).ok_or_else(missing)?;
        let walked = walker.run(&self.shared.pool, alone, &Kernels { kernels: &self.kernels, run });
        walked.map_err(|e| HalError::Device(e.to_string()))?;
        failed.end()
    }

    /// An output of the last step where it lies.
    fn left(&self, index: usize) -> Result<CpuResident, HalError> {
        let missing = || HalError::Step(format!("output {index} is not there, or is a cache state"));
        let output = self.outputs.get(index).and_then(Option::as_ref).ok_or_else(missing)?;
        Ok(CpuResident::new(&self.shared, &self.memory, output, &self.last, &self.steps))
    }
}

/// The kernels of a program in one run.
struct Kernels<'a> {
    kernels: &'a [Box<dyn BoundKernel>],
    run: Run<'a>,
}

impl Tasks for Kernels<'_> {
    unsafe fn run(&self, task: &Task, work: Work<'_>) {
        // SAFETY: the caller's contract.
        unsafe { self.kernels[task.step as usize].run(task.stage, &self.run, work) }
    }

    fn waiting(&self, task: &Task, work: Work<'_>, look: u32) {
        self.kernels[task.step as usize].waiting(task.stage, &self.run, work, look);
    }
}
