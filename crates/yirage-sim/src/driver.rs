//! The driver: what a vendor's runtime would give.

use crate::bindings::check;
use crate::collective::SimRank;
use crate::faults::Countdown;
use crate::kernel::{Module, SimModule};
use crate::launch::SimLaunch;
use crate::memory::SimMemoryStats;
use crate::operation::SimOperation;
use crate::queue::{Command, SimCommand, SimDeviceState, SimQueue};
use crate::settings::{Settings, SimKernels};
use crate::shared_module::SharedKernels;
use crate::transfers::SimTransferQueue;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use yirage_hal::driver::{
    Binding, BufferId, BufferSlice, CapturedGraphId, DeviceClock, Download, Driver, DriverError, GraphCapture, Launch,
    LaunchConfig, ModuleId, OperationCall, OperationId, OperationLibrary, PreparedOperation, StepCommand, Timestamp,
    TransferQueue,
};
use yirage_hal::{HostMemory, Record, StagingMemory};
use yirage_plan::DeviceLimits;

/// The driver of one device.
pub(crate) struct SimDriver {
    shared: Arc<SimDeviceState>,
    side: Mutex<SimHostQueue>,
    /// Modules, operations and captured graphs so far.
    next_id: AtomicU64,
    operations: Mutex<HashMap<u64, Arc<SimOperation>>>,
    captured_graphs: Mutex<HashMap<u64, Arc<[SimCommand]>>>,
    captures_graphs: bool,
    kernels: SimKernels,
    shared_kernels: Arc<SharedKernels>,
    has_clock: bool,
    limits: DeviceLimits,
    in_flight: usize,
    transfers: Option<SimTransferQueue>,
    rank: Option<SimRank>,
    queue: Option<JoinHandle<()>>,
}

/// The host's side of the queue.
struct SimHostQueue {
    commands: Sender<Command>,
    signalled: u64,
    alloc_fault: Countdown,
    submit_fault: Countdown,
}

impl SimDriver {
    /// Starts the device's queue.
    pub(crate) fn new(
        settings: &Settings,
        shared_kernels: Arc<SharedKernels>,
        ordinal: u32,
        rank: Option<SimRank>,
    ) -> Result<SimDriver, DriverError> {
        let shared = Arc::new(SimDeviceState::new(settings.memory));
        let transfers =
            settings.transfer_queue.then(|| SimTransferQueue::new(&shared, settings, ordinal)).transpose()?;
        let (commands, received) = channel();
        let queue = SimQueue::new(shared.clone(), settings, ordinal, rank.clone());
        let thread = std::thread::Builder::new().name(format!("sim {ordinal}")).spawn(move || queue.run(&received));
        let queue = thread.map_err(|e| DriverError::Failed { call: "open", why: e.to_string() })?;
        let (alloc_fault, submit_fault) =
            (Countdown::new(settings.faults.alloc), Countdown::new(settings.faults.submit));
        let side = Mutex::new(SimHostQueue { commands, signalled: 0, alloc_fault, submit_fault });
        Ok(SimDriver {
            shared,
            side,
            next_id: AtomicU64::new(0),
            operations: Mutex::default(),
            captured_graphs: Mutex::default(),
            captures_graphs: settings.captures_graphs,
            kernels: settings.kernels,
            shared_kernels,
            has_clock: settings.clock,
            limits: settings.limits.clone(),
            in_flight: settings.in_flight,
            transfers,
            rank,
            queue: Some(queue),
        })
    }

    /// A look at the device's memory that outlives the driver.
    pub(crate) fn monitor(&self) -> SimMonitor {
        SimMonitor(self.shared.clone())
    }

    fn enqueue(&self, command: Command) -> Result<(), DriverError> {
        self.enqueue_with(|_| command)
    }

    fn enqueue_with(&self, command: impl FnOnce(&mut SimHostQueue) -> Command) -> Result<(), DriverError> {
        self.shared.timeline.check_lost()?;
        let mut side = self.side.lock().unwrap_or_else(PoisonError::into_inner);
        if side.submit_fault.strikes() {
            return Err(DriverError::Failed { call: "submit", why: "it was ordered to fail".into() });
        }
        let command = command(&mut side);
        side.commands.send(command).map_err(|_| DriverError::Lost("its queue has ended".into()))
    }

    /// What is submitted although nobody could be told that it fails.
    fn give_back(&self, command: Command) {
        let side = self.side.lock().unwrap_or_else(PoisonError::into_inner);
        // The queue ends with the driver alone, and what is held with both.
        let _ = side.commands.send(command);
    }
}

impl SimDriver {
    /// A command with its kernel or operation looked up, and its bindings checked.
    fn resolved(&self, command: StepCommand) -> Result<SimCommand, DriverError> {
        Ok(match command {
            StepCommand::Launch(launch) => SimCommand::Launch(self.resolved_launch(launch)?),
            StepCommand::Operation(OperationCall { operation, bindings, workspace }) => {
                let gone = || DriverError::Failed { call: "operation", why: format!("{operation:?} is not prepared") };
                let operation = self.operations().get(&operation.0).cloned().ok_or_else(gone)?;
                check(&bindings, &self.limits)?;
                SimCommand::Operation { operation, bindings, workspace }
            }
            StepCommand::Collective(call) => SimCommand::Collective(call),
            StepCommand::Memory(command) => SimCommand::Memory(command),
        })
    }

    fn resolved_launch(&self, launch: Launch) -> Result<SimLaunch, DriverError> {
        let Launch { module, config: LaunchConfig { entry, arguments, .. }, grid, bindings } = launch;
        let found = self.shared.modules().get(&module.0).cloned();
        let gone = || DriverError::Failed { call: "launch", why: format!("there is no module {}", module.0) };
        let kernel = found.ok_or_else(gone)?.kernel(&entry)?;
        check(&bindings, &self.limits)?;
        Ok(SimLaunch { module: module.0, kernel, grid, bindings, arguments })
    }

    fn operations(&self) -> MutexGuard<'_, HashMap<u64, Arc<SimOperation>>> {
        self.operations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn captured_graphs(&self) -> MutexGuard<'_, HashMap<u64, Arc<[SimCommand]>>> {
        self.captured_graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next_id(&self) -> u64 {
        self.next_id.fetch_add(1, Ordering::Relaxed)
    }
}

impl GraphCapture for SimDriver {
    fn capture(&self, commands: Vec<StepCommand>) -> Result<CapturedGraphId, DriverError> {
        self.shared.timeline.check_lost()?;
        let commands = commands.into_iter().map(|command| self.resolved(command)).collect::<Result<_, _>>()?;
        let id = self.next_id();
        self.captured_graphs().insert(id, commands);
        self.shared.count_capture();
        Ok(CapturedGraphId(id))
    }

    fn replay(&self, graph: CapturedGraphId) -> Result<(), DriverError> {
        let commands = self.captured_graphs().get(&graph.0).cloned();
        let gone = || DriverError::Failed { call: "replay", why: format!("there is no captured graph {}", graph.0) };
        self.enqueue(Command::Replay(commands.ok_or_else(gone)?))
    }

    fn release(&self, graph: CapturedGraphId) {
        // What was submitted has the commands itself.
        self.captured_graphs().remove(&graph.0);
    }
}

impl OperationLibrary for SimDriver {
    fn prepare(&self, descriptor: &[u8], bindings: &[Binding]) -> Result<PreparedOperation, DriverError> {
        self.shared.timeline.check_lost()?;
        let operation = SimOperation::new(descriptor, bindings)?;
        let (id, workspace) = (self.next_id(), operation.workspace);
        self.operations().insert(id, Arc::new(operation));
        Ok(PreparedOperation { id: OperationId(id), workspace })
    }

    fn release(&self, operation: OperationId) {
        self.operations().remove(&operation.0);
    }
}

impl DeviceClock for SimDriver {
    fn timestamp(&self) -> Result<Box<dyn Timestamp>, DriverError> {
        let time = Arc::default();
        self.enqueue(Command::Timestamp(Arc::clone(&time)))?;
        Ok(Box::new(Landing(time)))
    }
}

impl Driver for SimDriver {
    fn alloc(&self, bytes: u64) -> Result<BufferId, DriverError> {
        self.shared.timeline.check_lost()?;
        let strikes = self.side.lock().unwrap_or_else(PoisonError::into_inner).alloc_fault.strikes();
        let mut memory = self.shared.memory();
        if strikes {
            let (free, total) = memory.capacity();
            return Err(DriverError::OutOfMemory { wanted: bytes, free: Some(free), total: Some(total) });
        }
        memory.alloc(bytes)
    }

    fn free(&self, buffer: BufferId) {
        self.give_back(Command::Free(buffer));
    }

    fn submit(&self, command: StepCommand) -> Result<(), DriverError> {
        let command = self.resolved(command)?;
        self.enqueue(Command::Step(command))
    }

    fn upload(&self, from: Arc<dyn HostMemory>, to: BufferSlice) -> Result<(), DriverError> {
        self.enqueue(Command::Upload { from, to })
    }

    fn download(&self, from: BufferSlice) -> Result<Box<dyn Download>, DriverError> {
        let into = Arc::default();
        self.enqueue(Command::Download { from, into: Arc::clone(&into) })?;
        Ok(Box::new(Landing(into)))
    }

    fn copy_from(&self, peer: &SimDriver, from: BufferSlice, to: BufferSlice) -> Result<(), DriverError> {
        let (lent, borrowed) = channel();
        peer.enqueue(Command::Lend { from, to: lent })?;
        self.enqueue(Command::Borrow { from: borrowed, to })
    }

    fn module(&self, code: &[u8]) -> Result<ModuleId, DriverError> {
        self.shared.timeline.check_lost()?;
        // A device whose kernels are all operations is given no code.
        let module = match self.kernels {
            SimKernels::Interpreted | SimKernels::Emulated(_) | SimKernels::Recorded => {
                SimModule::Shared(self.shared_kernels.module(code)?)
            }
            SimKernels::References | SimKernels::Operations if code.is_empty() => {
                SimModule::References(Module::empty())
            }
            SimKernels::References | SimKernels::Operations => SimModule::References(Module::new(code)?),
        };
        let id = self.next_id();
        self.shared.modules().insert(id, Arc::new(module));
        Ok(ModuleId(id))
    }

    fn unload(&self, module: ModuleId) {
        self.give_back(Command::Unload(module.0));
    }

    fn staging(&self, bytes: usize) -> Result<Arc<dyn StagingMemory>, DriverError> {
        self.shared.count_staging(bytes as u64);
        Ok(Arc::new(Record::zeroed(bytes)))
    }

    fn transfer_queue(&self) -> Option<&dyn TransferQueue> {
        self.transfers.as_ref().map(|queue| queue as &dyn TransferQueue)
    }

    fn graph_capture(&self) -> Option<&dyn GraphCapture> {
        self.captures_graphs.then_some(self)
    }

    fn operations(&self) -> Option<&dyn OperationLibrary> {
        (self.kernels == SimKernels::Operations).then_some(self)
    }

    fn clock(&self) -> Option<&dyn DeviceClock> {
        self.has_clock.then_some(self)
    }

    fn signal(&self) -> Result<u64, DriverError> {
        let mut value = 0;
        self.enqueue_with(|side| {
            side.signalled += 1;
            value = side.signalled;
            Command::Signal(value)
        })?;
        Ok(value)
    }

    fn reached(&self) -> Result<u64, DriverError> {
        self.shared.timeline.reached()
    }

    fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError> {
        self.shared.timeline.wait(value, deadline)
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }
}

impl Drop for SimDriver {
    fn drop(&mut self) {
        // The queue may wait for ranks that come no more, and others for this one.
        if let Some(rank) = &self.rank {
            rank.leave("it was closed");
        }
        self.give_back(Command::Stop);
        if let Some(queue) = self.queue.take() {
            // A queue that panicked has told nobody; there is nobody left to tell.
            let _ = queue.join();
        }
    }
}

/// What the queue will have written here.
struct Landing<T>(Arc<Mutex<T>>);

impl<T: Default> Landing<T> {
    fn landed(self) -> T {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Download for Landing<Record> {
    fn take(self: Box<Self>) -> Record {
        self.landed()
    }
}

impl Timestamp for Landing<Duration> {
    fn take(self: Box<Self>) -> Duration {
        self.landed()
    }
}

/// A look at a device's memory.
#[derive(Clone, Debug)]
pub(crate) struct SimMonitor(Arc<SimDeviceState>);

impl SimMonitor {
    pub(crate) fn memory_stats(&self) -> SimMemoryStats {
        self.0.memory().stats()
    }

    pub(crate) fn busy(&self) -> Duration {
        self.0.busy()
    }

    pub(crate) fn captures(&self) -> u64 {
        self.0.captures()
    }

    pub(crate) fn staging(&self) -> u64 {
        self.0.staging()
    }
}
