//! A plan loaded on a device over a driver: one command after the other on its queue.

use super::arena::DeviceOutput;
use super::buffer::DriverAccount;
use super::captured_graph::CapturedGraph;
use super::contract::{Download, Driver, Timestamp};
use super::library::Library;
use super::memory::BufferSlice;
use super::prepared_step::PreparedStep;
use super::resources::{BoundMemory, LoadedModule, ProgramCommands};
use super::step_inputs::DeviceStepInputs;
use crate::device::{Bindings, Program};
use crate::error::HalError;
use crate::record::HostMemory;
use crate::step::{Fence, OutputHandle, Pending, StepInputValue, StepOutputs, StepRequest};
use std::sync::Arc;
use std::time::Duration;
use yirage_ir::{Dims, Type};
use yirage_plan::{ExecutorKind, Plan, VerifiedPlan};

/// How long a step may take before its device counts as hanging.
const HANG_AFTER: Duration = Duration::from_secs(120);

/// The program.
pub(super) struct DriverProgram<D: Driver, L: Library> {
    account: Arc<DriverAccount<D>>,
    library: Arc<L>,
    plan: Plan,
    captured: Option<CapturedGraph<D>>,
    persistent: Option<PreparedStep<D>>,
    /// Made when all inputs have memory, and again when one of them lies elsewhere.
    commands: Option<Arc<ProgramCommands<D>>>,
    code: Arc<LoadedModule<D>>,
    memory: Arc<BoundMemory<D>>,
    inputs: DeviceStepInputs<D>,
    /// The number of the last step among those that write to the arena.
    last: u64,
}

impl<D: Driver, L: Library> DriverProgram<D, L> {
    pub(super) fn new(
        account: &Arc<DriverAccount<D>>,
        library: &Arc<L>,
        plan: &VerifiedPlan,
        bindings: &Bindings,
    ) -> Result<DriverProgram<D, L>, HalError> {
        let mut program = DriverProgram {
            account: account.clone(),
            library: library.clone(),
            captured: None,
            persistent: None,
            commands: None,
            memory: Arc::new(BoundMemory::new(account, plan, bindings)?),
            code: Arc::new(LoadedModule::new(account, &**library, plan)?),
            inputs: DeviceStepInputs::new(account, plan)?,
            plan: plan.clone().into_plan(),
            last: 0,
        };
        // What the library says against the plan is said when it is loaded, where that can be.
        if program.inputs.are_placed() {
            program.commands()?;
        }
        Ok(program)
    }

    fn commands(&mut self) -> Result<Arc<ProgramCommands<D>>, HalError> {
        if let Some(commands) = &self.commands {
            return Ok(commands.clone());
        }
        let made = ProgramCommands::new(&*self.library, &self.plan, &self.code, &self.memory, &self.inputs)?;
        Ok(self.commands.insert(Arc::new(made)).clone())
    }

    /// Submits the commands of a step by an executor.
    fn run(&mut self, kind: ExecutorKind, dims: &Dims) -> Result<(), HalError> {
        match kind {
            ExecutorKind::Steps => {
                self.commands()?.at(dims).try_for_each(|command| Ok(self.account.driver.submit(command?)?))
            }
            ExecutorKind::Replay => self.captured()?.replay(),
            ExecutorKind::Persistent => self.persistent()?.run(),
        }
    }

    fn captured(&mut self) -> Result<&CapturedGraph<D>, HalError> {
        let commands = self.commands()?;
        let captured = match self.captured.take() {
            Some(captured) => captured,
            None => CapturedGraph::new(&self.account, &commands, &self.plan.bucket)?,
        };
        Ok(self.captured.insert(captured))
    }

    fn persistent(&mut self) -> Result<&PreparedStep<D>, HalError> {
        let commands = self.commands()?;
        let prepared = match self.persistent.take() {
            Some(prepared) => prepared,
            None => PreparedStep::new(&self.account, &commands, &self.plan, self.inputs.sizes())?,
        };
        Ok(self.persistent.insert(prepared))
    }

    fn timestamp(&self) -> Result<Option<Box<dyn Timestamp>>, HalError> {
        Ok(self.account.driver.clock().map(|clock| clock.timestamp()).transpose()?)
    }

    /// An output's place in the arena and its type.
    fn output(&self, index: usize) -> Result<(BufferSlice, &Type), HalError> {
        let arena = self.memory.arena.buffer.slice();
        let place = self.plan.graph.outputs.get(index).and_then(|&id| self.plan.placement(id));
        let placed = place.and_then(|place| Some((arena.part(place.offset, place.bytes)?, place.value)));
        let missing = || HalError::Step(format!("output {index} is not there, or is a cache state"));
        placed.map(|(slice, value)| (slice, self.plan.graph.ty(value))).ok_or_else(missing)
    }

    /// Submits that the host gets an output of a step of these sizes.
    fn download(&self, index: usize, dims: &Dims) -> Result<Box<dyn Download>, HalError> {
        let (slice, ty) = self.output(index)?;
        let bytes = ty.bytes(dims) as u64;
        let short = || HalError::Step(format!("output {index} takes {bytes} bytes, its place has {}", slice.bytes));
        Ok(self.account.driver.download(slice.part(0, bytes).ok_or_else(short)?)?)
    }
}

impl<D: Driver, L: Library> Program for DriverProgram<D, L> {
    fn submit(&mut self, step: StepRequest) -> Result<Fence, HalError> {
        if self.inputs.reserve(&self.account, &step)? {
            (self.commands, self.captured, self.persistent) = (None, None, None);
        }
        self.inputs.submit(&self.account, &step)?;
        self.last = self.memory.arena.begin_step();
        let began = self.timestamp()?;
        self.run(step.kind, &step.dims)?;
        let ended = self.timestamp()?;
        let downloads =
            step.reads.iter().map(|&index| self.download(index, &step.dims)).collect::<Result<Vec<_>, HalError>>()?;
        let value = self.account.driver.signal()?;
        let given = step.inputs.into_iter().filter_map(StepInputValue::into_host).collect();
        let stamps = began.zip(ended);
        Ok(Fence::Pending(Box::new(InQueue { account: self.account.clone(), value, downloads, stamps, _given: given })))
    }

    /// What an executor runs is made when it is first wanted: a persistent kernel takes its compiler seconds. Where inputs have no
    /// memory yet, the step that gives it to them makes it.
    fn prepare(&mut self, kind: ExecutorKind) -> Result<(), HalError> {
        match kind {
            ExecutorKind::Persistent if self.inputs.are_placed() => self.persistent().map(drop),
            _ => Ok(()),
        }
    }

    fn output_handle(&self, index: usize) -> Result<OutputHandle, HalError> {
        let (slice, _) = self.output(index)?;
        let arena = self.memory.arena.clone();
        Ok(OutputHandle(Arc::new(DeviceOutput { arena, slice, step: self.last })))
    }

    fn has_device_times(&self) -> bool {
        self.account.driver.clock().is_some()
    }
}

/// A step on the queue.
struct InQueue<D: Driver> {
    account: Arc<DriverAccount<D>>,
    value: u64,
    downloads: Vec<Box<dyn Download>>,
    /// When its commands began and ended.
    stamps: Option<(Box<dyn Timestamp>, Box<dyn Timestamp>)>,
    /// What the host gave, which its owners may want back only when the step is over.
    _given: Vec<Arc<dyn HostMemory>>,
}

impl<D: Driver> Pending for InQueue<D> {
    fn is_done(&self) -> bool {
        // Of a lost device nothing more comes.
        self.account.driver.reached().map_or(true, |reached| reached >= self.value)
    }

    fn wait(self: Box<Self>) -> Result<StepOutputs, HalError> {
        self.account.driver.wait(self.value, HANG_AFTER)?;
        let device_time = self.stamps.map(|(began, ended)| ended.take().saturating_sub(began.take()));
        Ok(StepOutputs { outputs: self.downloads.into_iter().map(Download::take).collect(), device_time })
    }
}
