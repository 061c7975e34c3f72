//! Kernels and commands of these tests.

use std::sync::Arc;
use std::time::Duration;
use yirage_hal::driver::{
    Binding, BindingAccess, BufferId, BufferSlice, Driver, KernelLaunch, Launch, LaunchConfig, ModuleId, StepCommand,
};
use yirage_hal::{Backend, Device, OpenOptions, Record};
use yirage_kir::{BufferAccess, BufferOwnership, ComputeKernel, KernelWriter, ScalarType};
use yirage_probe::ProbeEnvironment;
use yirage_wgpu::{GraphicsApi, WgpuBackend, WgpuDriver};

pub(crate) const LONG: Duration = Duration::from_secs(100);
pub(crate) const THREADS: u32 = 64;

pub(crate) fn driver() -> WgpuDriver {
    WgpuBackend::new(GraphicsApi::Vulkan, ProbeEnvironment::of_this_process()).driver(0).unwrap()
}

/// The device with its kernels.
pub(crate) fn device() -> Arc<dyn Device> {
    let backend = WgpuBackend::new(GraphicsApi::Vulkan, ProbeEnvironment::of_this_process());
    backend.open(0, &OpenOptions::default()).unwrap().0
}

/// All of a buffer of so many bytes.
pub(crate) fn whole(buffer: BufferId, bytes: u64) -> BufferSlice {
    BufferSlice { buffer, offset: 0, bytes }
}

/// A new buffer with these words.
pub(crate) fn buffer_of(driver: &WgpuDriver, words: &[u32]) -> BufferSlice {
    let record = Record::of(words);
    let bytes = size_of_val(words) as u64;
    let slice = whole(driver.alloc(bytes).unwrap(), bytes);
    driver.upload(Arc::new(record), slice).unwrap();
    slice
}

/// What is in a slice once everything submitted has run.
pub(crate) fn read(driver: &WgpuDriver, slice: BufferSlice) -> Record {
    let download = driver.download(slice).unwrap();
    let value = driver.signal().unwrap();
    driver.wait(value, LONG).unwrap();
    download.take()
}

pub(crate) fn words(driver: &WgpuDriver, slice: BufferSlice) -> Vec<u32> {
    read(driver, slice).values().to_vec()
}

/// `x = x * times + plus` for each of `count` words, all of which are in one buffer of a kernel's own.
pub(crate) fn affine(name: &str, count: u32, times: u32, plus: u32) -> ComputeKernel {
    let mut w = KernelWriter::new(name, THREADS);
    let x = w.buffer("x", ScalarType::U32, BufferAccess::ReadWrite, BufferOwnership::Own);
    let (group, thread, threads, count) = (w.group(0), w.thread(), w.u32(THREADS), w.u32(count));
    let first = w.mul(group, threads);
    let at = w.add(first, thread);
    let inside = w.less(at, count);
    w.when(inside, |w| {
        let (old, times, plus) = (w.load(x, at), w.u32(times), w.u32(plus));
        let product = w.mul(old, times);
        let new = w.add(product, plus);
        w.store(x, at, new);
    });
    w.finish()
}

/// The last buffer gets the first one with each number changed `rounds` times by `x * 5 + 1`, for one group of words.
pub(crate) fn rounds(name: &str, rounds: u32, ownership: BufferOwnership) -> ComputeKernel {
    let mut w = KernelWriter::new(name, THREADS);
    let from = w.buffer("from", ScalarType::U32, BufferAccess::Read, ownership);
    let to = w.buffer("to", ScalarType::U32, BufferAccess::Write, ownership);
    let thread = w.thread();
    let first = w.load(from, thread);
    let x = w.variable(first);
    let (zero, one, five, rounds) = (w.u32(0), w.u32(1), w.u32(5), w.u32(rounds));
    w.for_each(zero, rounds, one, |w, _| {
        let old = w.get(x);
        let product = w.mul(old, five);
        let new = w.add(product, one);
        w.set(x, new);
    });
    let last = w.get(x);
    w.store(to, thread, last);
    w.finish()
}

/// A launch of one of the kernels above.
pub(crate) fn launch(module: ModuleId, entry: &str, groups: u32, bound: &[(BufferSlice, BindingAccess)]) -> Launch {
    let bindings = bound.iter().map(|&(slice, access)| Binding { slice, access }).collect();
    let KernelLaunch { config, bindings, .. } = KernelLaunch::new(entry, bindings, Vec::new());
    Launch { module, config: LaunchConfig { block: [THREADS, 1, 1], ..config }, grid: [groups, 1, 1], bindings }
}

/// The launch of a kernel of one buffer.
pub(crate) fn on(module: ModuleId, entry: &str, groups: u32, slice: BufferSlice) -> StepCommand {
    StepCommand::Launch(launch(module, entry, groups, &[(slice, BindingAccess::ReadWrite)]))
}
