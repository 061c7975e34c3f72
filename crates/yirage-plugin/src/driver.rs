//! The driver of a library's device.

use crate::abi::RawSlice;
use crate::command::PluginCommand;
use crate::device::OpenedDevice;
use crate::download::{DownloadMemory, PluginDownload, PluginTimestamp, WriterOfDownload};
use crate::kernels::{CompiledKernels, CompiledModule};
use crate::status::{NOT_YET, OUT_OF_MEMORY, ask, refused};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use yirage_hal::HostMemory;
use yirage_hal::driver::{
    BufferId, BufferSlice, CapturedGraphId, DeviceClock, Download, Driver, DriverError, GraphCapture, Launch,
    LaunchConfig, MemoryCommand, ModuleId, StepCommand, Timestamp,
};
use yirage_kir::render::CDialect;

/// Where buffers have to begin, in bytes.
pub(crate) const ALIGN: u32 = 256;

/// The driver of one device of a library.
pub struct PluginDriver {
    // Behind the state, whose memory the device may still write until it is closed: see `Drop`.
    device: Option<Arc<OpenedDevice>>,
    dialect: CDialect,
    in_flight: usize,
    host: Mutex<PluginHostState>,
}

/// What the host has of the device.
#[derive(Default)]
struct PluginHostState {
    /// Bytes of each buffer that is held.
    buffers: HashMap<u64, u64>,
    kernels: CompiledKernels,
    modules: HashMap<u64, CompiledModule>,
    last_module: u64,
    /// What each captured graph runs.
    graphs: HashMap<u64, Vec<PluginCommand>>,
    /// Downloads behind which nothing was signalled yet.
    submitted: Vec<WriterOfDownload>,
    /// Those behind which a value was signalled.
    signalled: VecDeque<(u64, Vec<WriterOfDownload>)>,
    last_signal: u64,
}

impl PluginDriver {
    /// The driver of an opened device whose kernels are of a dialect.
    pub(crate) fn new(device: Arc<OpenedDevice>, dialect: CDialect, in_flight: usize) -> PluginDriver {
        PluginDriver { device: Some(device), dialect, in_flight, host: Mutex::default() }
    }

    fn host(&self) -> MutexGuard<'_, PluginHostState> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn device(&self) -> Result<&Arc<OpenedDevice>, DriverError> {
        self.device.as_ref().ok_or_else(|| DriverError::Lost("the device was closed".into()))
    }
}

/// Checks that a launch is one of a kernel with so many threads and buffers.
fn check_launch(config: &LaunchConfig, threads: u32, buffers: usize, bound: usize) -> Result<(), DriverError> {
    // A launch that may begin early begins behind its predecessor: no kernel here waits by itself.
    let LaunchConfig { entry, block, shared_bytes, cooperative, early_start: _, arguments } = config;
    let wrong = |why: String| Err(refused("launch", format!("kernel `{entry}`: {why}")));
    if *block != [threads, 1, 1] {
        return wrong(format!("expected groups of {threads} threads, got {block:?}"));
    }
    if bound != buffers {
        return wrong(format!("expected {buffers} buffers, got {bound}"));
    }
    if *cooperative || *shared_bytes != 0 || !arguments.is_empty() {
        let what =
            format!("a launch of `{entry}` with arguments, shared bytes of its own or groups that wait for each other");
        return Err(DriverError::Unsupported { what, why: "kernels of plug-ins are given buffers alone".into() });
    }
    Ok(())
}

impl PluginHostState {
    /// A command with all that it needs.
    fn resolve(&self, command: StepCommand) -> Result<PluginCommand, DriverError> {
        match command {
            StepCommand::Launch(launch) => self.resolve_launch(&launch),
            StepCommand::Memory(MemoryCommand::Copy { from, to }) if from.bytes != to.bytes => {
                Err(refused("copy", format!("{} bytes are given for {}", from.bytes, to.bytes)))
            }
            StepCommand::Memory(MemoryCommand::Copy { from, to }) => {
                Ok(PluginCommand::Copy { from: self.slice("copy", from)?, to: self.slice("copy", to)? })
            }
            StepCommand::Memory(MemoryCommand::Fill { slice, byte }) => {
                Ok(PluginCommand::Fill { slice: self.slice("fill", slice)?, byte })
            }
            StepCommand::Operation(_) | StepCommand::Collective(_) => Err(DriverError::Unsupported {
                what: "an operation of a vendor's library, or one with other devices".into(),
                why: "a plug-in runs kernels on one device at a time".into(),
            }),
        }
    }

    fn resolve_launch(&self, launch: &Launch) -> Result<PluginCommand, DriverError> {
        let Launch { module, config, grid, bindings } = launch;
        let found = self.modules.get(&module.0);
        let kernel = found.ok_or_else(|| refused("launch", format!("there is no module {}", module.0)))?;
        let kernel = kernel.kernel(&config.entry)?.clone();
        check_launch(config, kernel.threads, kernel.buffers, bindings.len())?;
        let slices = bindings.iter().map(|binding| self.slice("launch", binding.slice));
        Ok(PluginCommand::Launch { kernel, grid: *grid, slices: slices.collect::<Result<_, DriverError>>()? })
    }

    /// Bytes of a buffer that is held.
    fn slice(&self, call: &'static str, slice: BufferSlice) -> Result<RawSlice, DriverError> {
        let BufferSlice { buffer: BufferId(buffer), offset, bytes } = slice;
        let none = || refused(call, format!("there is no buffer {buffer}"));
        let has = *self.buffers.get(&buffer).ok_or_else(none)?;
        if offset.checked_add(bytes).is_none_or(|end| end > has) {
            return Err(refused(call, format!("{bytes} bytes from {offset} are beyond a buffer of {has}")));
        }
        Ok(RawSlice { buffer, offset, bytes })
    }

    /// Lets go of what the queue has written.
    fn reached(&mut self, value: u64) {
        while self.signalled.front().is_some_and(|&(of, _)| of <= value) {
            self.signalled.pop_front();
        }
    }
}

impl Driver for PluginDriver {
    fn alloc(&self, bytes: u64) -> Result<BufferId, DriverError> {
        let (mut host, device) = (self.host(), self.device()?);
        let mut buffer = 0;
        let told = {
            let _turn = device.turn();
            // SAFETY: a number is written to `buffer`.
            ask("alloc", |message| unsafe { (device.functions().alloc)(device.raw(), bytes, &mut buffer, message) })
        };
        told.map_err(|answer| match answer.code {
            OUT_OF_MEMORY => DriverError::OutOfMemory { wanted: bytes, free: None, total: None },
            _ => answer.into(),
        })?;
        if host.buffers.insert(buffer, bytes).is_some() {
            return Err(refused("alloc", format!("the plug-in gave the number {buffer} to two buffers")));
        }
        Ok(BufferId(buffer))
    }

    fn free(&self, BufferId(buffer): BufferId) {
        let known = self.host().buffers.remove(&buffer);
        if let (Some(_), Ok(device)) = (known, self.device()) {
            device.free(buffer);
        }
    }

    fn submit(&self, command: StepCommand) -> Result<(), DriverError> {
        let (host, device) = (self.host(), self.device()?);
        host.resolve(command)?.submit(&device.turn())
    }

    fn upload(&self, from: Arc<dyn HostMemory>, to: BufferSlice) -> Result<(), DriverError> {
        let (host, device, bytes) = (self.host(), self.device()?, from.bytes());
        if bytes.len() as u64 != to.bytes {
            return Err(refused("upload", format!("{} bytes are given for {}", bytes.len(), to.bytes)));
        }
        let to = host.slice("upload", to)?;
        let _turn = device.turn();
        // SAFETY: `to` lies in memory of the device and is as long; the bytes are read before it returns.
        Ok(ask("upload", |message| unsafe {
            (device.functions().upload)(device.raw(), bytes.as_ptr().cast(), to, message)
        })?)
    }

    fn download(&self, from: BufferSlice) -> Result<Box<dyn Download>, DriverError> {
        let (mut host, device) = (self.host(), self.device()?);
        let from = host.slice("download", from)?;
        let too_long = |_| refused("download", format!("{} bytes are more than the host has", from.bytes));
        let bytes = usize::try_from(from.bytes).map_err(too_long)?;
        let memory = DownloadMemory::new(bytes);
        // Even a call that fails may have begun to write.
        host.submitted.push(WriterOfDownload(memory.clone()));
        let _turn = device.turn();
        // SAFETY: `to` is as long, and stays until a signal behind it is reached or the device is closed: `submitted` holds it.
        ask("download", |message| unsafe {
            (device.functions().download)(device.raw(), from, memory.address().cast(), message)
        })?;
        Ok(Box::new(PluginDownload { memory, bytes }))
    }

    fn module(&self, code: &[u8]) -> Result<ModuleId, DriverError> {
        let no_text = |error: std::str::Utf8Error| refused("module", format!("its code is no text: {error}"));
        let text = std::str::from_utf8(code).map_err(no_text)?;
        let kernels = yirage_kir::text::parse(text).map_err(|error| refused("module", error.to_string()))?;
        let (mut host, device) = (self.host(), self.device()?);
        let module = host.kernels.module(device, self.dialect, &kernels)?;
        host.last_module += 1;
        let id = host.last_module;
        host.modules.insert(id, module);
        Ok(ModuleId(id))
    }

    fn unload(&self, ModuleId(module): ModuleId) {
        let module = self.host().modules.remove(&module);
        drop(module);
    }

    fn graph_capture(&self) -> Option<&dyn GraphCapture> {
        self.device().ok()?.graphs().map(|_| self as &dyn GraphCapture)
    }

    fn clock(&self) -> Option<&dyn DeviceClock> {
        self.device().ok()?.timestamp().map(|_| self as &dyn DeviceClock)
    }

    fn signal(&self) -> Result<u64, DriverError> {
        let (mut host, device) = (self.host(), self.device()?);
        let mut value = 0;
        {
            let _turn = device.turn();
            // SAFETY: a number is written to `value`.
            ask("signal", |message| unsafe { (device.functions().signal)(device.raw(), &mut value, message) })?;
        }
        if value <= host.last_signal {
            return Err(refused("signal", format!("expected a value above {}, got {value}", host.last_signal)));
        }
        host.last_signal = value;
        let submitted = std::mem::take(&mut host.submitted);
        host.signalled.push_back((value, submitted));
        Ok(value)
    }

    fn reached(&self) -> Result<u64, DriverError> {
        let device = self.device()?;
        let mut value = 0;
        // SAFETY: a number is written to `value`.
        ask("reached", |message| unsafe { (device.functions().reached)(device.raw(), &mut value, message) })?;
        self.host().reached(value);
        Ok(value)
    }

    fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError> {
        let device = self.device()?;
        // Half a thousand years will do.
        let nanoseconds = u64::try_from(deadline.as_nanos()).unwrap_or(u64::MAX);
        // SAFETY: it takes numbers alone.
        let told =
            ask("wait", |message| unsafe { (device.functions().wait)(device.raw(), value, nanoseconds, message) });
        match told {
            Err(answer) if answer.code == NOT_YET => {
                let waited_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
                Err(DriverError::Deadline { waited_ms, reached: self.reached()?, wanted: value })
            }
            told => {
                // What failed has come to its end all the same.
                self.host().reached(value);
                Ok(told?)
            }
        }
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }
}

impl GraphCapture for PluginDriver {
    fn capture(&self, commands: Vec<StepCommand>) -> Result<CapturedGraphId, DriverError> {
        let (mut host, device) = (self.host(), self.device()?);
        let graphs = device.graphs().ok_or_else(no_graphs)?;
        let ready = commands.into_iter().map(|command| host.resolve(command));
        let ready: Vec<PluginCommand> = ready.collect::<Result<_, DriverError>>()?;
        let mut graph = 0;
        {
            let turn = device.turn();
            // SAFETY: the device is open.
            turn.ask("capture", |_, raw, message| unsafe { (graphs.begin)(raw, message) })?;
            let kept = ready.iter().try_for_each(|command| command.submit(&turn));
            // SAFETY: a capture was begun, and a number is written to `graph`.
            let ended = turn.ask("capture", |_, raw, message| unsafe { (graphs.end)(raw, &mut graph, message) });
            if kept.is_err() && ended.is_ok() {
                // SAFETY: `end` gave it, and nobody else has it.
                unsafe { (graphs.release)(device.raw(), graph) };
            }
            kept?;
            ended?;
        }
        if host.graphs.insert(graph, ready).is_some() {
            return Err(refused("capture", format!("the plug-in gave the number {graph} to two graphs")));
        }
        Ok(CapturedGraphId(graph))
    }

    fn replay(&self, CapturedGraphId(graph): CapturedGraphId) -> Result<(), DriverError> {
        let (host, device) = (self.host(), self.device()?);
        let graphs = device.graphs().ok_or_else(no_graphs)?;
        if !host.graphs.contains_key(&graph) {
            return Err(refused("replay", format!("there is no captured graph {graph}")));
        }
        // SAFETY: the graph is one of the device's; its kernels are kept with it, and whoever captured keeps the buffers.
        Ok(device.turn().ask("replay", |_, raw, message| unsafe { (graphs.replay)(raw, graph, message) })?)
    }

    fn release(&self, CapturedGraphId(graph): CapturedGraphId) {
        let known = self.host().graphs.remove(&graph);
        if let (Some(commands), Ok(device)) = (known, self.device())
            && let Some(graphs) = device.graphs()
        {
            {
                let _turn = device.turn();
                // SAFETY: `end` gave it, and it is given back once.
                unsafe { (graphs.release)(device.raw(), graph) };
            }
            drop(commands);
        }
    }
}

/// An error of ours: nobody is given what captures where there is none.
fn no_graphs() -> DriverError {
    refused("capture", "the plug-in captures no commands")
}

impl DeviceClock for PluginDriver {
    fn timestamp(&self) -> Result<Box<dyn Timestamp>, DriverError> {
        let (mut host, device) = (self.host(), self.device()?);
        let note = device.timestamp().ok_or_else(|| refused("timestamp", "the plug-in has no clock"))?;
        let memory = DownloadMemory::new(size_of::<u64>());
        host.submitted.push(WriterOfDownload(memory.clone()));
        let address = memory.address();
        // SAFETY: the number stays until a signal behind it is reached or the device is closed: `submitted` holds it.
        device.turn().ask("timestamp", |_, raw, message| unsafe { note(raw, address, message) })?;
        Ok(Box::new(PluginTimestamp(memory)))
    }
}

impl Drop for PluginDriver {
    /// The device goes before the memory that it may still write.
    fn drop(&mut self) {
        let host = self.host.get_mut().unwrap_or_else(PoisonError::into_inner);
        host.graphs.clear();
        host.modules.clear();
        self.device = None;
    }
}
