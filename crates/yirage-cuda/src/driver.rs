//! The driver: a device with its memory, a stream for steps and one for weights.

use crate::buffers::DeviceBuffers;
use crate::clock::EventClock;
use crate::code_store::{CodeStore, CodeStoreReport};
use crate::graph::{CapturedCommands, CudaGraphs, ReadyCommand};
use crate::kernels::{KernelModule, KernelToolchain, LoadedKernels, ReadyLaunch};
use crate::limits::{IN_FLIGHT, RECLAIM};
use crate::persistent::{PersistentSteps, ReadyStep, StepSite, source};
use crate::pinned::{DownloadPool, PinnedDownload, StagingPiece};
use crate::queue::{InUse, StreamQueue};
use crate::runtime::{CudaContext, CudaEvent, CudaStream, DeviceRange, PinnedMemory};
use crate::status::{refused, unsupported};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use yirage_collectives::{CollectiveWay, RankCollectives, collective_operands};
use yirage_hal::driver::{
    BufferId, BufferSlice, CapturedGraphId, CollectiveCall, DeviceClock, Download, Driver, DriverError, GraphCapture,
    Launch, MemoryCommand, ModuleId, PersistentKernels, PersistentStep, PersistentStepId, StepCommand, Timestamp,
    TransferQueue,
};
use yirage_hal::{HostMemory, Record, StagingMemory};
use yirage_ir::Op;
use yirage_kernels::{ModuleKernel, module_kernels};
use yirage_kir::ComputeKernel;

/// The driver of one device.
pub struct CudaDriver {
    // In the order in which they go away: streams before what they may still have, and every one of them keeps the context.
    steps: StreamQueue,
    transfers: StreamQueue,
    /// Captures alone, so that a capture that fails spoils nothing else.
    captures: CudaStream,
    clock: EventClock,
    downloads: Arc<DownloadPool>,
    host: Mutex<CudaHostState>,
    /// The group that the device is a rank of.
    rank: Option<RankCollectives>,
    /// It has the context too.
    toolchain: KernelToolchain,
}

/// What the host has of the device.
#[derive(Default)]
struct CudaHostState {
    buffers: DeviceBuffers,
    kernels: LoadedKernels,
    modules: HashMap<u64, Arc<KernelModule>>,
    last_module: u64,
    graphs: CudaGraphs,
    persistent: PersistentSteps,
}

impl CudaDriver {
    /// The driver of the device that a toolchain makes kernels for.
    pub(crate) fn new(toolchain: KernelToolchain) -> Result<CudaDriver, DriverError> {
        let context = toolchain.context.clone();
        Ok(CudaDriver {
            steps: StreamQueue::new(&context)?,
            transfers: StreamQueue::new(&context)?,
            captures: CudaStream::new(&context)?,
            clock: EventClock::new(&context),
            downloads: Arc::default(),
            host: Mutex::default(),
            rank: None,
            toolchain,
        })
    }

    /// What became of kernels that are kept on disk; none where they are not.
    pub fn code_report(&self) -> Option<CodeStoreReport> {
        self.toolchain.kept.as_ref().map(CodeStore::report)
    }

    /// The text around the functions of a step's kernels where they run as one kernel.
    pub fn persistent_text() -> &'static str {
        source::around()
    }

    /// The same with another such text, for whoever tries what becomes of mistakes in it.
    #[must_use]
    pub fn with_persistent_text(mut self, text: String) -> CudaDriver {
        self.toolchain.around_functions = text;
        self
    }

    /// The same as a rank of a group.
    pub(crate) fn of_rank(self, rank: RankCollectives) -> CudaDriver {
        CudaDriver { rank: Some(rank), ..self }
    }

    fn context(&self) -> &Arc<CudaContext> {
        &self.toolchain.context
    }

    fn host(&self) -> MutexGuard<'_, CudaHostState> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives kernels to the device: what [`Driver::module`] does with their text.
    ///
    /// # Errors
    /// A kernel that the compiler or the device does not take, by its name.
    pub fn load(&self, kernels: &[ComputeKernel]) -> Result<ModuleId, DriverError> {
        self.load_module(&kernels.iter().cloned().map(ModuleKernel::Computed).collect::<Vec<_>>())
    }

    fn load_module(&self, kernels: &[ModuleKernel]) -> Result<ModuleId, DriverError> {
        let mut host = self.host();
        let module = host.kernels.module(&self.toolchain, kernels)?;
        host.last_module += 1;
        let id = host.last_module;
        host.modules.insert(id, Arc::new(module));
        Ok(ModuleId(id))
    }

    /// Takes part in what the group does.
    fn collective(&self, call: &CollectiveCall) -> Result<(), DriverError> {
        let Some(rank) = &self.rank else {
            let what = format!("`{}` with other devices", call.op.name());
            return Err(unsupported(what, "this backend computes with one device at a time"));
        };
        let (from, to) = self.host().operands(call)?;
        let context = self.context().clone();
        let attach = move || context.stay().map_err(|error| error.to_string());
        match rank.way(call, [from.address(), to.address()], attach)? {
            CollectiveWay::Host => self.through_the_host(rank, call, from, to),
            CollectiveWay::Copy => self.steps.submit([], |stream| stream.copy(from, to)),
            CollectiveWay::Maker(communicator, kind, elements) => {
                let in_use: InUse = Box::new(communicator.clone());
                let gives_to_all =
                    matches!(&call.op, Op::Broadcast(op) if op.root as usize == communicator.seat().rank);
                self.steps.submit([in_use], |stream| {
                    if gives_to_all {
                        stream.copy(from, to)?;
                    }
                    stream.collective(&communicator, kind, elements)?.map_err(|error| rank.ended(&error))
                })
            }
        }
    }

    /// A collective by the host's memory: it waits for the stream, and for the other ranks.
    fn through_the_host(
        &self,
        rank: &RankCollectives,
        call: &CollectiveCall,
        from: DeviceRange,
        to: DeviceRange,
    ) -> Result<(), DriverError> {
        let download = self.download_range(from)?;
        let value = self.steps.signal()?;
        self.steps.wait(value, rank.deadline())?;
        let got = rank.meet(call, download.take().bytes())?;
        if got.len() != to.bytes() {
            return Err(refused("collective", format!("{} bytes are got for {}", got.len(), to.bytes())));
        }
        let record: Arc<dyn HostMemory> = Arc::new(Record::of(&got));
        self.steps.submit([Box::new(record.clone()) as InUse], |stream| stream.upload(record.bytes(), to))
    }

    fn download_range(&self, range: DeviceRange) -> Result<Box<dyn Download>, DriverError> {
        let piece = self.downloads.take(self.context(), range.bytes())?;
        if range.bytes() > 0 {
            let memory = piece.memory().ok_or_else(|| refused("download", "its piece has gone back to the pool"))?;
            self.steps.submit([Box::new(piece.writer()) as InUse], |stream| stream.download(range, memory))?;
        }
        Ok(Box::new(PinnedDownload { piece, bytes: range.bytes() }))
    }

    /// Waits until memory that is on its way back is back.
    fn reclaim(&self) -> Result<(), DriverError> {
        let value = self.steps.signal()?;
        self.steps.wait(value, RECLAIM)
    }
}

impl CudaHostState {
    /// Where what a rank gives lies, and what it gets goes.
    fn operands(&self, call: &CollectiveCall) -> Result<(DeviceRange, DeviceRange), DriverError> {
        let [from, to] = collective_operands(call)?;
        Ok((self.buffers.range("collective", from)?, self.buffers.range("collective", to)?))
    }

    /// A command with all that it needs.
    fn resolve(&self, command: StepCommand) -> Result<ReadyCommand, DriverError> {
        match command {
            StepCommand::Launch(launch) => self.resolve_launch(&launch).map(ReadyCommand::Launch),
            StepCommand::Memory(MemoryCommand::Copy { from, to }) => {
                let (from, to) = (self.buffers.range("copy", from)?, self.buffers.range("copy", to)?);
                Ok(ReadyCommand::Copy { from, to })
            }
            StepCommand::Memory(MemoryCommand::Fill { slice, byte }) => {
                Ok(ReadyCommand::Fill { range: self.buffers.range("fill", slice)?, byte })
            }
            StepCommand::Operation(_) => {
                Err(unsupported("an operation of a vendor's library", "this backend runs kernels of its own alone"))
            }
            StepCommand::Collective(call) => {
                let what = format!("`{}` with other devices in a captured graph", call.op.name());
                Err(unsupported(what, "ranks meet on the host before they take part"))
            }
        }
    }

    fn resolve_launch(&self, launch: &Launch) -> Result<ReadyLaunch, DriverError> {
        let Launch { module, config, grid, bindings } = launch;
        let found = self.modules.get(&module.0);
        let kernel = found.ok_or_else(|| refused("launch", format!("there is no module {}", module.0)))?;
        let of_kernel = |error: DriverError| match error {
            DriverError::Failed { call, why } => refused(call, format!("kernel `{}`: {why}", config.entry)),
            other => other,
        };
        let pointers = bindings.iter().map(|binding| self.buffers.range("launch", binding.slice).map_err(of_kernel));
        ReadyLaunch::new(kernel.kernel(&config.entry)?, config, *grid, pointers.collect::<Result<_, DriverError>>()?)
    }

    fn range_of(&self, call: &'static str, bytes: usize, to: BufferSlice) -> Result<DeviceRange, DriverError> {
        let range = self.buffers.range(call, to)?;
        let fits = range.bytes() == bytes;
        fits.then_some(range).ok_or_else(|| refused(call, format!("{bytes} bytes are given for {}", range.bytes())))
    }
}

/// Submits an upload, of no byte none.
fn upload(
    queue: &StreamQueue,
    host: &CudaHostState,
    from: Arc<dyn HostMemory>,
    to: BufferSlice,
) -> Result<(), DriverError> {
    let to = host.range_of("upload", from.bytes().len(), to)?;
    if to.bytes() == 0 {
        return Ok(());
    }
    queue.submit([Box::new(from.clone()) as InUse], |stream| stream.upload(from.bytes(), to))
}

impl Driver for CudaDriver {
    fn alloc(&self, bytes: u64) -> Result<BufferId, DriverError> {
        let mut host = self.host();
        match host.buffers.alloc(self.context(), bytes) {
            Err(DriverError::OutOfMemory { .. }) => {
                self.reclaim()?;
                host.buffers.alloc(self.context(), bytes)
            }
            done => done,
        }
    }

    fn free(&self, buffer: BufferId) {
        let memory = self.host().buffers.remove(buffer);
        if let Some(memory) = memory {
            self.steps.retire(Box::new(memory));
        }
    }

    fn submit(&self, command: StepCommand) -> Result<(), DriverError> {
        if let StepCommand::Collective(call) = &command {
            return self.collective(call);
        }
        let host = self.host();
        let command = host.resolve(command)?;
        self.steps.submit([], |stream| command.submit(stream, None))
    }

    fn upload(&self, from: Arc<dyn HostMemory>, to: BufferSlice) -> Result<(), DriverError> {
        upload(&self.steps, &self.host(), from, to)
    }

    fn download(&self, from: BufferSlice) -> Result<Box<dyn Download>, DriverError> {
        let host = self.host();
        self.download_range(host.buffers.range("download", from)?)
    }

    fn copy_from(&self, peer: &CudaDriver, from: BufferSlice, to: BufferSlice) -> Result<(), DriverError> {
        if std::ptr::eq(self, peer) {
            return self.submit(StepCommand::Memory(MemoryCommand::Copy { from, to }));
        }
        let from = peer.host().buffers.range("copy", from)?;
        let to = self.host().range_of("copy", from.bytes(), to)?;
        let before = Arc::new(CudaEvent::new(peer.context(), false)?);
        peer.steps.submit([], |stream| stream.record(&before))?;
        let after = Arc::new(CudaEvent::new(self.context(), false)?);
        let events: [InUse; 2] = [Box::new(before.clone()), Box::new(after.clone())];
        self.steps.submit(events, |stream| {
            stream.wait_for(&before)?;
            stream.copy_from(peer.context(), from, to)?;
            stream.record(&after)
        })?;
        peer.steps.submit([Box::new(after.clone()) as InUse], |stream| stream.wait_for(&after))
    }

    fn staging(&self, bytes: usize) -> Result<Arc<dyn StagingMemory>, DriverError> {
        Ok(Arc::new(StagingPiece(PinnedMemory::new(self.context(), bytes)?)))
    }

    fn transfer_queue(&self) -> Option<&dyn TransferQueue> {
        Some(self)
    }

    fn module(&self, code: &[u8]) -> Result<ModuleId, DriverError> {
        let no_text = |error: std::str::Utf8Error| refused("module", format!("its code is no text: {error}"));
        let text = std::str::from_utf8(code).map_err(no_text)?;
        self.load_module(&module_kernels(text).map_err(|error| refused("module", error.to_string()))?)
    }

    fn unload(&self, module: ModuleId) {
        let module = self.host().modules.remove(&module.0);
        if let Some(module) = module {
            self.steps.retire(Box::new(module));
        }
    }

    /// A rank meets the others on the host, which no captured graph can.
    fn graph_capture(&self) -> Option<&dyn GraphCapture> {
        if self.rank.is_none() { Some(self) } else { None }
    }

    /// Nor can a kernel that is all of a step.
    fn persistent_kernels(&self) -> Option<&dyn PersistentKernels> {
        if self.rank.is_none() && self.toolchain.is_cooperative { Some(self) } else { None }
    }

    fn clock(&self) -> Option<&dyn DeviceClock> {
        Some(self)
    }

    fn signal(&self) -> Result<u64, DriverError> {
        self.steps.signal()
    }

    fn reached(&self) -> Result<u64, DriverError> {
        self.steps.reached()
    }

    fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError> {
        match &self.rank {
            Some(rank) => rank.wait(deadline, |deadline| self.steps.wait(value, deadline)),
            None => self.steps.wait(value, deadline),
        }
    }

    fn in_flight(&self) -> usize {
        IN_FLIGHT
    }
}

impl TransferQueue for CudaDriver {
    fn upload(&self, from: Arc<dyn HostMemory>, to: BufferSlice) -> Result<(), DriverError> {
        upload(&self.transfers, &self.host(), from, to)
    }

    fn signal(&self) -> Result<u64, DriverError> {
        self.transfers.signal()
    }

    fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError> {
        self.transfers.wait(value, deadline)
    }
}

impl GraphCapture for CudaDriver {
    fn capture(&self, commands: Vec<StepCommand>) -> Result<CapturedGraphId, DriverError> {
        let mut host = self.host();
        let commands = commands.into_iter().map(|command| host.resolve(command)).collect::<Result<_, DriverError>>()?;
        let captured = CapturedCommands::new(&self.captures, commands)?;
        Ok(host.graphs.add(captured))
    }

    fn replay(&self, graph: CapturedGraphId) -> Result<(), DriverError> {
        let host = self.host();
        let captured = host.graphs.get(graph)?;
        self.steps.submit([], |stream| stream.replay(&captured.graph))
    }

    fn release(&self, graph: CapturedGraphId) {
        let captured = self.host().graphs.remove(graph);
        if let Some(captured) = captured {
            self.steps.retire(Box::new(captured));
        }
    }
}

impl PersistentKernels for CudaDriver {
    fn prepare(&self, step: &PersistentStep) -> Result<PersistentStepId, DriverError> {
        let mut host = self.host();
        let CudaHostState { buffers, kernels, modules, persistent, .. } = &mut *host;
        let module = modules.get(&step.module.0);
        let module = module.ok_or_else(|| refused("prepare", format!("there is no module {}", step.module.0)))?;
        let site = StepSite { toolchain: &self.toolchain, kernels, module, buffers, queue: &self.steps };
        Ok(persistent.add(ReadyStep::new(site, step)?))
    }

    fn run(&self, step: PersistentStepId) -> Result<(), DriverError> {
        let ready = self.host().persistent.get(step)?.clone();
        ready.run(&self.steps)
    }

    fn release(&self, step: PersistentStepId) {
        let ready = self.host().persistent.remove(step);
        if let Some(ready) = ready {
            self.steps.retire(Box::new(ready));
        }
    }
}

impl DeviceClock for CudaDriver {
    fn timestamp(&self) -> Result<Box<dyn Timestamp>, DriverError> {
        let mut timestamp = None;
        self.steps.submit([], |stream| {
            timestamp = Some(self.clock.timestamp(stream)?);
            Ok(())
        })?;
        let timestamp = timestamp.ok_or_else(|| refused("timestamp", "nothing was submitted"))?;
        Ok(Box::new(timestamp))
    }
}
