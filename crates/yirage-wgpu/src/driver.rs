//! The driver: a device of wgpu with one queue.

use crate::adapter::FoundAdapter;
use crate::bind_groups::{BindGroups, BindingLayouts};
use crate::byte_commands::{ByteCommands, Making, uploaded};
use crate::capture::CapturedGraphs;
use crate::clock::{Clock, PendingTimestamp};
use crate::errors::{ready, refused, unsupported, whole};
use crate::limits::{COPY_UNIT, IN_FLIGHT};
use crate::memory::{BufferRange, Buffers};
use crate::pipeline_store::PipelineStore;
use crate::pipelines::{KernelSource, ReadyKernels, ReadyModule};
use crate::recorder::{RecordedCommand, Recorder};
use crate::timeline::SubmissionTimeline;
use crate::transfers::{StagedDownload, StagingPool};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use yirage_hal::HostMemory;
use yirage_hal::driver::{
    BufferId, BufferSlice, CapturedGraphId, DeviceClock, Download, Driver, DriverError, GraphCapture, Launch,
    MemoryCommand, ModuleId, StepCommand, Timestamp,
};
use yirage_kir::ComputeKernel;

/// The driver of one device.
pub struct WgpuDriver {
    device: wgpu::Device,
    limits: wgpu::Limits,
    /// Bytes of its memory, where that is known.
    memory: Option<u64>,
    timeline: Arc<SubmissionTimeline>,
    staging: Arc<StagingPool>,
    clock: Option<Clock>,
    /// What the device's driver has compiled, where it is kept.
    kept: Option<PipelineStore>,
    host: Mutex<HostSide>,
}

/// What the host has of the device.
struct HostSide {
    recorder: Recorder,
    buffers: Buffers,
    layouts: BindingLayouts,
    groups: BindGroups,
    kernels: ReadyKernels,
    modules: HashMap<u64, ReadyModule>,
    last_module: u64,
    bytes: ByteCommands,
    graphs: CapturedGraphs,
    /// Room for the commands of one.
    resolved: Vec<RecordedCommand>,
}

impl WgpuDriver {
    /// Opens a device.
    ///
    /// # Errors
    /// What its adapter says.
    pub(crate) fn new(found: &FoundAdapter) -> Result<WgpuDriver, DriverError> {
        let limits = found.adapter.limits();
        let descriptor = wgpu::DeviceDescriptor {
            label: None,
            required_features: found.features(),
            required_limits: limits.clone(),
            experimental_features: wgpu::ExperimentalFeatures::disabled(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            trace: wgpu::Trace::Off,
        };
        let opened = ready(found.adapter.request_device(&descriptor));
        let (device, queue) = opened
            .ok_or_else(|| refused("open", "the adapter gave no answer"))?
            .map_err(|error| refused("open", whole(&error)))?;
        let timeline = Arc::new(SubmissionTimeline::default());
        let lost = timeline.clone();
        device.set_device_lost_callback(move |_, why| lost.lose(if why.is_empty() { "it was closed" } else { &why }));
        let failed = timeline.clone();
        // Without a handler, wgpu ends the process.
        device.on_uncaptured_error(Arc::new(move |error| failed.note(crate::errors::failed("submit", &error))));
        let clock = Clock::new(&device, &queue)?;
        let host = Mutex::new(HostSide {
            recorder: Recorder::new(device.clone(), queue, timeline.clone()),
            buffers: Buffers::default(),
            layouts: BindingLayouts::default(),
            groups: BindGroups::default(),
            kernels: ReadyKernels::default(),
            modules: HashMap::new(),
            last_module: 0,
            bytes: ByteCommands::default(),
            graphs: CapturedGraphs::default(),
            resolved: Vec::new(),
        });
        Ok(WgpuDriver {
            device,
            limits,
            memory: found.memory(),
            timeline,
            staging: Arc::default(),
            clock,
            kept: None,
            host,
        })
    }

    /// The same, which keeps what the device's driver compiles in a folder.
    ///
    /// # Errors
    /// Why nothing is kept; the driver is there all the same.
    pub(crate) fn keeping(mut self, folder: PathBuf, found: &FoundAdapter) -> (WgpuDriver, Result<(), String>) {
        if !self.device.features().contains(wgpu::Features::PIPELINE_CACHE) {
            return (self, Err("the device's driver has no such cache".into()));
        }
        let kept = PipelineStore::new(folder, found, &self.device);
        let told = kept.as_ref().map(drop).map_err(Clone::clone);
        self.kept = kept.ok();
        (self, told)
    }

    /// Bytes of compiled kernels that the device began with, and why some were not taken or not written; none where they are not
    /// kept.
    pub fn kept_pipelines(&self) -> Option<(u64, Vec<String>)> {
        self.kept.as_ref().map(|kept| (kept.began_with(), kept.notices()))
    }

    /// The host's side, where the device is there to have one.
    fn host(&self) -> Result<MutexGuard<'_, HostSide>, DriverError> {
        self.timeline.check_lost()?;
        Ok(self.host_of_any())
    }

    fn host_of_any(&self) -> MutexGuard<'_, HostSide> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives kernels to the device: what [`Driver::module`] does with their text.
    ///
    /// # Errors
    /// A kernel that the device does not take, by its name.
    pub fn load(&self, kernels: &[ComputeKernel]) -> Result<ModuleId, DriverError> {
        let mut host = self.host()?;
        let HostSide { kernels: known, layouts, .. } = &mut *host;
        let cache = self.kept.as_ref().map(PipelineStore::cache);
        let module = known.module(&self.device, cache, layouts, kernels.iter().map(KernelSource::of))?;
        if let Some(kept) = &self.kept {
            kept.keep();
        }
        host.last_module += 1;
        let id = host.last_module;
        host.modules.insert(id, module);
        Ok(ModuleId(id))
    }

    /// A command with all that it needs, as one or several.
    fn resolve(
        &self,
        host: &mut HostSide,
        command: StepCommand,
        out: &mut Vec<RecordedCommand>,
    ) -> Result<(), DriverError> {
        let HostSide { buffers, layouts, bytes, .. } = host;
        let mut making = Making { device: &self.device, limits: &self.limits, layouts };
        match command {
            StepCommand::Launch(launch) => out.push(self.resolve_launch(host, &launch)?),
            StepCommand::Memory(MemoryCommand::Copy { from, to }) => {
                let (from, to) = (buffers.range("copy", from)?, buffers.range("copy", to)?);
                check_copy(&from, &to)?;
                bytes.copy(&mut making, &from, &to, out)?;
            }
            StepCommand::Memory(MemoryCommand::Fill { slice, byte }) => {
                let range = buffers.range("fill", slice)?;
                bytes.fill(&mut making, &range, byte, out)?;
            }
            StepCommand::Operation(_) => {
                return Err(unsupported("an operation of a vendor's library", "this interface runs kernels alone"));
            }
            StepCommand::Collective(call) => {
                let what = format!("`{}` with other devices", call.op.name());
                return Err(unsupported(what, "a device of this interface reaches no other one"));
            }
        }
        Ok(())
    }

    fn resolve_launch(&self, host: &mut HostSide, launch: &Launch) -> Result<RecordedCommand, DriverError> {
        let Launch { module, config, grid, bindings } = launch;
        let found = host.modules.get(&module.0);
        let gone = || refused("launch", format!("there is no module {}", module.0));
        let kernel = found.ok_or_else(gone)?.kernel(&config.entry)?;
        kernel.check(config)?;
        let most = self.limits.max_compute_workgroups_per_dimension;
        if grid.iter().any(|&groups| groups > most) {
            let why = format!("kernel `{}`: a grid of {grid:?} groups, at most {most} along an axis", config.entry);
            return Err(refused("launch", why));
        }
        let group = host.groups.of(&self.device, &self.limits, &host.buffers, &kernel.layout, bindings);
        let group = group.map_err(|error| match error {
            DriverError::Failed { call, why } => refused(call, format!("kernel `{}`: {why}", config.entry)),
            other => other,
        })?;
        Ok(RecordedCommand::Dispatch { pipeline: kernel.pipeline.clone(), group, grid: *grid })
    }

    /// Submits bytes that begin at a whole word of the device.
    fn upload_words(&self, host: &mut HostSide, bytes: &[u8], to: &BufferRange) -> Result<(), DriverError> {
        let whole = bytes.len() / COPY_UNIT as usize * COPY_UNIT as usize;
        let (words, rest) = bytes.split_at(whole);
        if !words.is_empty() {
            host.recorder.upload(words, &to.buffer, to.offset);
        }
        if rest.is_empty() {
            return Ok(());
        }
        let rest_to = to.part(whole as u64, rest.len() as u64);
        if !rest_to.is_last {
            return self.upload_bytes(host, rest, &rest_to);
        }
        // Behind a buffer's last byte lies nothing of anybody's.
        let mut word = [0; COPY_UNIT as usize];
        word[..rest.len()].copy_from_slice(rest);
        host.recorder.upload(&word, &to.buffer, rest_to.offset);
        Ok(())
    }

    /// Submits bytes for anywhere.
    fn upload_bytes(&self, host: &mut HostSide, bytes: &[u8], to: &BufferRange) -> Result<(), DriverError> {
        let from = uploaded(&self.device, bytes, "upload")?;
        let mut commands = Vec::new();
        let mut making = Making { device: &self.device, limits: &self.limits, layouts: &mut host.layouts };
        host.bytes.copy(&mut making, &from, to, &mut commands)?;
        commands.iter().for_each(|command| host.recorder.record(command));
        Ok(())
    }
}

fn check_copy(from: &BufferRange, to: &BufferRange) -> Result<(), DriverError> {
    if from.bytes != to.bytes {
        return Err(refused("copy", format!("{} bytes are given for {}", from.bytes, to.bytes)));
    }
    if from.buffer == to.buffer && from.offset < to.offset + to.bytes && to.offset < from.offset + from.bytes {
        let (bytes, at, other) = (from.bytes, from.offset, to.offset);
        return Err(refused("copy", format!("{bytes} bytes at {at} and at {other} of one buffer overlap")));
    }
    Ok(())
}

impl Driver for WgpuDriver {
    fn alloc(&self, bytes: u64) -> Result<BufferId, DriverError> {
        self.host()?.buffers.alloc(&self.device, &self.limits, self.memory, bytes)
    }

    fn free(&self, buffer: BufferId) {
        let mut host = self.host_of_any();
        host.groups.forget(buffer);
        host.buffers.free(buffer);
    }

    fn submit(&self, command: StepCommand) -> Result<(), DriverError> {
        let mut host = self.host()?;
        let mut resolved = std::mem::take(&mut host.resolved);
        let done = self.resolve(&mut host, command, &mut resolved);
        if done.is_ok() {
            resolved.iter().for_each(|command| host.recorder.record(command));
        }
        resolved.clear();
        host.resolved = resolved;
        done
    }

    fn upload(&self, from: Arc<dyn HostMemory>, to: BufferSlice) -> Result<(), DriverError> {
        let mut host = self.host()?;
        let (bytes, to) = (from.bytes(), host.buffers.range("upload", to)?);
        if bytes.len() as u64 != to.bytes {
            return Err(refused("upload", format!("{} bytes are given for {}", bytes.len(), to.bytes)));
        }
        if to.offset.is_multiple_of(COPY_UNIT) {
            self.upload_words(&mut host, bytes, &to)
        } else {
            self.upload_bytes(&mut host, bytes, &to)
        }
    }

    fn download(&self, from: BufferSlice) -> Result<Box<dyn Download>, DriverError> {
        let mut host = self.host()?;
        let range = host.buffers.range("download", from)?;
        let bytes = usize::try_from(range.bytes).map_err(|e| refused("download", e.to_string()))?;
        let skipped = range.offset % COPY_UNIT;
        if bytes == 0 {
            return Ok(Box::new(StagedDownload { staging: None, skipped, bytes }));
        }
        let words = (range.bytes + skipped).next_multiple_of(COPY_UNIT);
        let whole = BufferRange { offset: range.offset - skipped, bytes: words, ..range };
        let staging = Arc::new(self.staging.take(&self.device, words)?);
        host.recorder.download(&whole, &staging);
        Ok(Box::new(StagedDownload { staging: Some(staging), skipped, bytes }))
    }

    fn module(&self, code: &[u8]) -> Result<ModuleId, DriverError> {
        self.timeline.check_lost()?;
        let text =
            std::str::from_utf8(code).map_err(|error| refused("module", format!("its code is no text: {error}")))?;
        self.load(&yirage_kir::text::parse(text).map_err(|error| refused("module", error.to_string()))?)
    }

    fn unload(&self, module: ModuleId) {
        self.host_of_any().modules.remove(&module.0);
    }

    fn graph_capture(&self) -> Option<&dyn GraphCapture> {
        Some(self)
    }

    fn clock(&self) -> Option<&dyn DeviceClock> {
        self.clock.as_ref().map(|_| self as &dyn DeviceClock)
    }

    fn signal(&self) -> Result<u64, DriverError> {
        Ok(self.host()?.recorder.signal())
    }

    fn reached(&self) -> Result<u64, DriverError> {
        self.timeline.reached(&self.device)
    }

    fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError> {
        self.timeline.wait(&self.device, value, deadline)
    }

    fn in_flight(&self) -> usize {
        IN_FLIGHT
    }
}

impl GraphCapture for WgpuDriver {
    fn capture(&self, commands: Vec<StepCommand>) -> Result<CapturedGraphId, DriverError> {
        let mut host = self.host()?;
        let mut resolved = Vec::with_capacity(commands.len());
        for command in commands {
            self.resolve(&mut host, command, &mut resolved)?;
        }
        Ok(host.graphs.add(resolved))
    }

    fn replay(&self, graph: CapturedGraphId) -> Result<(), DriverError> {
        let mut host = self.host()?;
        let commands = host.graphs.get(graph)?;
        commands.iter().for_each(|command| host.recorder.record(command));
        Ok(())
    }

    fn release(&self, graph: CapturedGraphId) {
        self.host_of_any().graphs.remove(graph);
    }
}

impl DeviceClock for WgpuDriver {
    fn timestamp(&self) -> Result<Box<dyn Timestamp>, DriverError> {
        let none = || unsupported("a timestamp", "the device has no clock that is read between commands");
        let clock = self.clock.as_ref().ok_or_else(none)?;
        let batch = || clock.batch(&self.device, &self.staging);
        let (batch, place) = self.host()?.recorder.timestamp(batch, &clock.set)?;
        Ok(Box::new(PendingTimestamp { batch, place, tick: clock.tick() }))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a test may stop at anything
mod tests {
    use super::*;
    use crate::{GraphicsApi, WgpuBackend};
    use yirage_probe::ProbeEnvironment;

    fn lost<T: std::fmt::Debug>(done: Result<T, DriverError>) {
        assert!(matches!(done, Err(DriverError::Lost(_))), "{done:?}");
    }

    #[test]
    #[ignore = "needs a Vulkan device"]
    fn of_a_lost_device_everything_is_lost_and_nothing_hangs() {
        let backend = WgpuBackend::new(GraphicsApi::Vulkan, ProbeEnvironment::of_this_process());
        let driver = backend.driver(0).unwrap();
        let slice = BufferSlice { buffer: driver.alloc(64).unwrap(), offset: 0, bytes: 64 };
        let reached = driver.signal().unwrap();
        driver.wait(reached, Duration::from_secs(100)).unwrap();
        let download = driver.download(slice).unwrap();
        let value = driver.signal().unwrap();
        driver.device.destroy();
        lost(driver.wait(value + 1, Duration::from_secs(100)));
        lost(driver.alloc(4));
        lost(driver.submit(StepCommand::Memory(MemoryCommand::Fill { slice, byte: 0 })));
        lost(driver.download(slice).map(drop));
        lost(driver.signal());
        lost(driver.reached());
        lost(driver.module(b"").map(drop));
        driver.wait(reached, Duration::ZERO).unwrap();
        driver.free(slice.buffer);
        drop(download);
        let again = backend.driver(0).unwrap();
        assert_eq!(again.signal(), Ok(1), "another device of the adapter goes on");
    }
}
