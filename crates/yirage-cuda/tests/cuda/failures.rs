//! What goes wrong in the driver is told, and nothing that was taken is kept.

use crate::fake::{FakeCuda, FakeCudaStats};
use crate::support::{LONG, affine, buffer_of, on, run, words};
use std::sync::Arc;
use std::time::Duration;
use yirage_cuda::{CudaBackend, CudaVendor};
use yirage_hal::HalError;
use yirage_hal::Record;
use yirage_hal::driver::{BufferSlice, Driver, DriverError, MemoryCommand, StepCommand};

/// Everything that a program does, once: what it computed, and how long it took on the device.
pub(crate) fn everything(vendor: CudaVendor, machine: &FakeCuda) -> Result<(Vec<u32>, Duration), HalError> {
    let driver = CudaBackend::new(vendor, machine.surroundings()).driver(0)?;
    let module = driver.load(&[affine("step", 64, 3, 1)])?;
    let slice = BufferSlice { buffer: driver.alloc(256)?, offset: 0, bytes: 256 };
    let queue = driver.transfer_queue().unwrap();
    let mut piece = driver.staging(256)?;
    Arc::get_mut(&mut piece).unwrap().bytes_mut().fill(1);
    queue.upload(piece, slice)?;
    let value = queue.signal()?;
    queue.wait(value, LONG)?;
    let other = BufferSlice { buffer: driver.alloc(256)?, offset: 0, bytes: 256 };
    driver.upload(Arc::new(Record::zeroed(256)), other)?;
    let begin = driver.clock().unwrap().timestamp()?;
    run(&driver, on(module, "step", 1, slice))?;
    let capture = driver.graph_capture().unwrap();
    let commands = vec![
        StepCommand::Launch(on(module, "step", 1, slice)),
        StepCommand::Memory(MemoryCommand::Copy { from: slice, to: other }),
    ];
    let graph = capture.capture(commands)?;
    capture.replay(graph)?;
    driver.submit(StepCommand::Memory(MemoryCommand::Fill { slice: other.part(0, 4).unwrap(), byte: 0 }))?;
    let end = driver.clock().unwrap().timestamp()?;
    let download = driver.download(other)?;
    let value = driver.signal()?;
    driver.wait(value, LONG)?;
    let took = end.take().saturating_sub(begin.take());
    capture.release(graph);
    driver.free(slice.buffer);
    driver.free(other.buffer);
    Ok((download.take().values().to_vec(), took))
}

/// Nothing is held.
pub(crate) fn all_is_back(stats: FakeCudaStats) -> bool {
    let FakeCudaStats { bytes, buffers, host_buffers, streams, events, modules, graphs, executables, contexts, .. } =
        stats;
    let FakeCudaStats { leaks, overruns, faults, .. } = stats;
    [bytes, buffers, host_buffers, streams, events, modules, graphs, executables, contexts, leaks, overruns, faults]
        == [0; 12]
}

/// The calls that give or do something, in which a failure is told. A capture that cannot be ended is none of them: nothing of its
/// thread could be given back while it goes on.
const CALLS: [&str; 25] = [
    "cuInit",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuMemAlloc_v2",
    "cuMemHostAlloc",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuMemsetD8Async",
    "cuStreamCreate",
    "cuEventCreate",
    "cuEventRecord",
    "cuEventQuery",
    "cuEventElapsedTime",
    "cuModuleLoadData",
    "cuModuleGetFunction",
    "cuLaunchKernel",
    "cuStreamBeginCapture_v2",
    "cuGraphInstantiateWithFlags",
    "cuGraphLaunch",
    "cuDeviceGetName",
    "cuDriverGetVersion",
];

/// Those without which a device is known less well, and computes all the same.
const FACTS: [&str; 2] = ["cuDeviceGetAttribute", "cuEventElapsedTime"];

#[test]
#[ignore = "needs a compiler of C++"]
fn a_call_that_fails_is_told_and_nothing_is_kept() {
    let machine = FakeCuda::new(&[]);
    let (wanted, took) = everything(CudaVendor::Nvidia, &machine).unwrap();
    assert!(took > Duration::ZERO);
    assert_eq!(wanted[0], 0);
    assert_eq!(wanted[1..], [0x0101_0101u32.wrapping_mul(9).wrapping_add(4); 63]);
    let (mut told, mut passed) = (0, 0);
    for call in CALLS {
        for nth in 1..=4 {
            machine.fail(call, nth, 1);
            let done = everything(CudaVendor::Nvidia, &machine);
            machine.fail(call, 0, 0);
            match done {
                Ok((words, _)) => {
                    // Later calls of a name may be of nothing that is needed, or not be made.
                    assert!(nth > 1 || FACTS.contains(&call), "{call} failed and nobody was told");
                    assert_eq!(words, wanted, "{call} {nth}");
                    passed += 1;
                }
                Err(error) => {
                    assert!(!error.to_string().is_empty(), "{call} {nth}");
                    told += 1;
                }
            }
            let stats = machine.stats();
            assert!(all_is_back(stats), "{call} {nth}: {stats:?}");
        }
    }
    println!("{told} failures told, {passed} of facts and of calls that were not made");
}

#[test]
#[ignore = "needs a compiler of C++"]
fn of_a_lost_device_everything_is_lost_and_nothing_hangs() {
    let machine = FakeCuda::new(&[("FAKE_CUDA_DEVICES", "2")]);
    let backend = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings());
    let (driver, other) = (backend.driver(0).unwrap(), backend.driver(1).unwrap());
    let module = driver.load(&[affine("beside", 1 << 20, 1, 1)]).unwrap();
    let slice = buffer_of(&driver, &[1; 64]);
    let reached = driver.signal().unwrap();
    driver.wait(reached, LONG).unwrap();
    // It writes a million words of a buffer that has 64.
    run(&driver, on(module, "beside", (1 << 20) / 64, slice)).unwrap();
    let value = driver.signal().unwrap_or(reached + 1);
    let lost = |error: DriverError| assert!(matches!(&error, DriverError::Lost(why) if why.contains("(7")), "{error}");
    lost(driver.wait(value, LONG).unwrap_err());
    lost(driver.wait(value + 1, LONG).unwrap_err());
    lost(driver.alloc(4).map(drop).unwrap_err());
    lost(driver.submit(StepCommand::Memory(MemoryCommand::Fill { slice, byte: 0 })).unwrap_err());
    lost(driver.download(slice).map(drop).unwrap_err());
    lost(driver.signal().map(drop).unwrap_err());
    lost(driver.reached().map(drop).unwrap_err());
    driver.wait(reached, Duration::ZERO).unwrap();
    driver.free(slice.buffer);
    drop(driver);
    assert_eq!(words(&other, buffer_of(&other, &[7])), [7], "another device goes on");
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_device_without_room_says_how_much_it_has() {
    let machine = FakeCuda::new(&[("FAKE_CUDA_MEMORY", "1048576")]);
    let driver = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings()).driver(0).unwrap();
    let held = driver.alloc(1 << 19).unwrap();
    let full = driver.alloc((1 << 19) + 1).unwrap_err();
    assert!(
        matches!(full, DriverError::OutOfMemory { wanted: 524_289, free: Some(524_288), total: Some(1_048_576) }),
        "{full}"
    );
    driver.free(held);
    driver.alloc((1 << 19) + 1).unwrap();
}
