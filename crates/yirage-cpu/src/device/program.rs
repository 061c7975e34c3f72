//! A plan loaded on the CPU: kernels bound to their operands, and the task programs that walk them.

use super::profiled::ProfiledTasks;
use crate::attention_plans::AttentionPlans;
use crate::bind::{
    Binder, BoundOutput, CpuResident, CpuRunContext, CpuStepInputs, Failed, ProgramMemory, ProgramMemorySizes,
    shared_bytes,
};
use crate::kernels::{self, BoundKernel};
use crate::shared::CpuContext;
use crate::straggler::StragglerControllers;
use crate::walk::{StageWork, Tasks, Walker};
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use yirage_hal::{Bindings, Fence, HalError, OutputHandle, Profiler, Program, ProgramId, StepOutputs, StepRequest};
use yirage_ir::{Dims, ValueSource};
use yirage_plan::{ExecutorKind, Plan, Task};

/// What parts of memory of different workers are multiples of.
const PAGE: usize = 4096;

/// The program.
pub(super) struct CpuProgram {
    shared: Arc<CpuContext>,
    step_inputs: CpuStepInputs,
    /// One for each step.
    kernels: Vec<Box<dyn BoundKernel>>,
    walkers: Vec<(ExecutorKind, Walker)>,
    attention_plans: AttentionPlans,
    /// Who runs the steps.
    stragglers: StragglerControllers,
    memory: Arc<ProgramMemory>,
    /// Bytes of a worker's passes over rows.
    worker_bytes: usize,
    outputs: Vec<BoundOutput>,
    /// Where the times of tasks go, if they are kept.
    profiler: Option<(Arc<Profiler>, ProgramId)>,
    /// The sizes of the last step, and its number among those that write to the memory.
    last: (Dims, u64),
}

impl CpuProgram {
    pub(super) fn new(shared: &Arc<CpuContext>, plan: &Plan, bindings: &Bindings) -> Result<CpuProgram, HalError> {
        let mut binder = Binder::new(shared, plan, bindings)?;
        let mut bound = Vec::new();
        for (s, step) in plan.steps.iter().enumerate() {
            if s > 0 && plan.steps[s - 1].phase != step.phase {
                binder.scratch.next_phase();
            }
            bound.push(kernels::bind(&mut binder, step.node as usize, &plan.kernels[step.kernel as usize].name)?);
        }
        let step_inputs = plan.graph.inputs_of(ValueSource::StepInput).map(|id| plan.graph.value(id));
        let step_inputs = step_inputs.map(|value| (value.name.clone(), value.ty.clone())).collect();
        let walkers = plan.programs.iter().map(|p| (p.kind, Walker::new(plan, p))).collect();
        let outputs = binder.outputs()?;
        // Parts of a page each, so that workers do not share lines or what is fetched beside them.
        let worker_bytes = binder.worker_bytes().checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
        let bytes = |bytes| shared_bytes(shared.supply, bytes);
        let wanted = ProgramMemorySizes {
            arena: bytes(plan.arena as usize),
            scratch: bytes(binder.scratch.peak()),
            workers: bytes(worker_bytes.saturating_mul(shared.pool.count())),
        };
        let fits = |memory: &ProgramMemory| memory.holds(shared, wanted);
        Ok(CpuProgram {
            shared: shared.clone(),
            step_inputs: CpuStepInputs::new(plan.bucket, step_inputs, shared),
            kernels: bound,
            walkers,
            attention_plans: binder.attention_plans,
            stragglers: StragglerControllers::new(shared.pool.count()),
            memory: bindings.arena.memory(fits, || ProgramMemory::new(shared, wanted))?,
            worker_bytes,
            outputs,
            profiler: shared.profiler.get().map(|profiler| (profiler.clone(), profiler.program(plan))),
            last: (Dims::default(), 0),
        })
    }
}

impl Program for CpuProgram {
    /// Runs the step at once: the fence is signalled.
    fn submit(&mut self, step: StepRequest) -> Result<Fence, HalError> {
        let shared = self.shared.clone();
        let turn = shared.turn();
        let held = self.step_inputs.resolve(&step.dims, &step.inputs, &self.memory, &turn)?;
        let step_inputs: Vec<&[u8]> = held.iter().map(|slot| slot.bytes(&turn)).collect();
        self.last = (step.dims, self.memory.begin_step());
        self.run(step.kind, &step.dims, &step_inputs)?;
        let outputs = step.reads.iter().map(|&index| Ok(self.resident_output(index)?.record(&turn)));
        Ok(Fence::Signalled(StepOutputs { outputs: outputs.collect::<Result<_, HalError>>()?, device_time: None }))
    }

    fn output_handle(&self, index: usize) -> Result<OutputHandle, HalError> {
        Ok(OutputHandle(Arc::new(self.resident_output(index)?)))
    }
}

impl CpuProgram {
    fn run(&mut self, kind: ExecutorKind, dims: &Dims, step_inputs: &[&[u8]]) -> Result<(), HalError> {
        self.attention_plans.prepare(dims, step_inputs, self.shared.pool.count())?;
        let failed = Failed::default();
        let run = CpuRunContext::new(
            self.shared.isa,
            dims,
            &self.attention_plans,
            step_inputs,
            (&self.memory, self.worker_bytes),
            &failed,
        );
        // Waking the others costs more than what one worker does anyway.
        let alone = self.kernels.iter().all(|kernel| kernel.workers(dims) <= 1);
        let missing = || HalError::Step(format!("the plan was loaded without a program for the executor `{kind}`"));
        let (_, walker) = self.walkers.iter_mut().find(|(k, _)| *k == kind).ok_or_else(missing)?;
        let (pool, kernels) = (&self.shared.pool, KernelTasks { kernels: &self.kernels, run });
        let watch = self.shared.watch.as_ref().filter(|_| !alone);
        let team = match watch {
            Some(_) => Some(self.stragglers.team(dims.tokens)),
            None => (!alone).then(|| pool.all()),
        };
        let began = Instant::now();
        let walked = match &self.profiler {
            None => walker.run(pool, team, &kernels),
            Some((profiler, program)) => {
                let step = profiler.begin(*program, kind, dims);
                let walked = walker.run(pool, team, &ProfiledTasks::new(&kernels, profiler, &step, alone));
                profiler.end(step);
                walked
            }
        };
        if let Some(watch) = watch {
            self.stragglers.took(
                dims.tokens,
                began.elapsed(),
                &mut watch.lock().unwrap_or_else(PoisonError::into_inner),
            );
        }
        walked.map_err(|e| HalError::Device(e.to_string()))?;
        failed.end()
    }

    /// An output of the last step where it lies.
    fn resident_output(&self, index: usize) -> Result<CpuResident, HalError> {
        let missing = || HalError::Step(format!("output {index} is not there, or is a cache state"));
        let output = self.outputs.get(index).and_then(Option::as_ref).ok_or_else(missing)?;
        let (dims, step) = &self.last;
        Ok(CpuResident::new(&self.memory, output, dims, *step))
    }
}

/// The kernels of a program in one run.
struct KernelTasks<'a> {
    kernels: &'a [Box<dyn BoundKernel>],
    run: CpuRunContext<'a>,
}

impl Tasks for KernelTasks<'_> {
    unsafe fn run(&self, task: &Task, work: StageWork<'_>) {
        // SAFETY: what `Tasks::run` is promised; `yirage_plan::VerifiedPlan` proves it of programs.
        unsafe { self.kernels[task.step as usize].run(task.stage, &self.run, work) }
    }

    fn waiting(&self, task: &Task, work: StageWork<'_>, look: u32) {
        self.kernels[task.step as usize].waiting(task.stage, &self.run, work, look);
    }
}
