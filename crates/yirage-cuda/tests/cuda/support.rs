//! Kernels and commands of these tests.

use crate::fake::FakeCuda;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use yirage_cuda::{CudaBackend, CudaDriver, CudaVendor};
use yirage_hal::driver::{
    Binding, BindingAccess, BufferSlice, Driver, DriverError, KernelLaunch, Launch, LaunchConfig, ModuleId, StepCommand,
};
use yirage_hal::{Backend, Device, OpenOptions, Record};
use yirage_kir::{BufferAccess, BufferOwnership, ComputeKernel, KernelWriter, ScalarType};

pub(crate) const LONG: Duration = Duration::from_secs(100);
pub(crate) const THREADS: u32 = 64;

/// A machine with two devices, for tests that leave them as they were.
pub(crate) fn machine() -> &'static FakeCuda {
    static MACHINE: OnceLock<FakeCuda> = OnceLock::new();
    MACHINE.get_or_init(|| FakeCuda::new(&[("FAKE_CUDA_DEVICES", "2")]))
}

pub(crate) fn backend() -> CudaBackend {
    CudaBackend::new(CudaVendor::Nvidia, machine().surroundings())
}

pub(crate) fn driver() -> CudaDriver {
    backend().driver(0).unwrap()
}

/// The device with its kernels.
pub(crate) fn device() -> Arc<dyn Device> {
    let (device, notes) = backend().open(0, &OpenOptions::default()).unwrap();
    assert!(notes.is_empty(), "{notes:?}");
    device
}

/// A new buffer with these words.
pub(crate) fn buffer_of(driver: &CudaDriver, words: &[u32]) -> BufferSlice {
    let bytes = size_of_val(words) as u64;
    let slice = BufferSlice { buffer: driver.alloc(bytes).unwrap(), offset: 0, bytes };
    driver.upload(Arc::new(Record::of(words)), slice).unwrap();
    slice
}

/// What is in a slice once everything submitted has run.
pub(crate) fn words(driver: &CudaDriver, slice: BufferSlice) -> Vec<u32> {
    let download = driver.download(slice).unwrap();
    let value = driver.signal().unwrap();
    driver.wait(value, LONG).unwrap();
    download.take().values().to_vec()
}

/// `x = x * times + plus` for each of `count` words, or for as many as there are threads.
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

/// The launch of a kernel of one buffer.
pub(crate) fn on(module: ModuleId, entry: &str, groups: u32, slice: BufferSlice) -> Launch {
    let bindings = vec![Binding { slice, access: BindingAccess::ReadWrite }];
    let KernelLaunch { config, bindings, .. } = KernelLaunch::new(entry, bindings, Vec::new());
    Launch { module, config: LaunchConfig { block: [THREADS, 1, 1], ..config }, grid: [groups, 1, 1], bindings }
}

/// Submits it.
pub(crate) fn run(driver: &CudaDriver, launch: Launch) -> Result<(), DriverError> {
    driver.submit(StepCommand::Launch(launch))
}
