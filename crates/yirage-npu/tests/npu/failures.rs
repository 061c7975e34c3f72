//! What goes wrong in the libraries is told, and nothing that was taken is kept.

use crate::fake::FakeMachine;
use crate::support::{LONG, buffer_of, codes, machine, words};
use std::time::Duration;
use yirage_conformance::{MeasuredOutcome, Suite};
use yirage_hal::driver::{Driver, DriverError, MemoryCommand, StepCommand};
use yirage_hal::{Backend, OpenOptions};
use yirage_npu::{NpuBackend, NpuVendor};

for_every_maker! {
    a_call_that_fails_is_told_and_nothing_is_kept,
    of_a_lost_device_everything_is_lost_and_nothing_hangs,
    a_device_without_room_says_how_much_it_has,
}

/// Everything that a device does, once, by a case of an op that has operators and one that has none: what went wrong.
fn everything(vendor: NpuVendor, machine: &FakeMachine, suite: &Suite) -> Option<String> {
    let backend = NpuBackend::new(vendor, machine.surroundings());
    let device = match backend.open(0, &OpenOptions::default()) {
        Ok((device, _)) => device,
        Err(error) => return Some(error.to_string()),
    };
    let outcomes = suite.measured(&*device).map(|case| case.outcome);
    outcomes.filter_map(|outcome| (outcome != MeasuredOutcome::Passed).then(|| format!("{outcome:?}"))).next()
}

/// The calls in which a failure is told.
fn calls(vendor: NpuVendor) -> &'static [&'static str] {
    match vendor {
        NpuVendor::Ascend => &[
            "aclInit",
            "aclrtCreateContext",
            "aclrtMalloc",
            "aclrtMallocHost",
            "aclrtMemcpyAsync",
            "aclrtCreateStream",
            "aclrtSetStreamFailureMode",
            "aclrtCreateEvent",
            "aclrtRecordEvent",
            "aclrtQueryEventStatus",
            "aclCreateTensor",
            "aclCreateScalar",
            "aclnnRmsNormGetWorkspaceSize",
            "aclnnRmsNorm",
            "aclnnAdds",
            "operator",
            "copy",
        ],
        NpuVendor::Cambricon => &[
            "cnrtMalloc",
            "cnrtHostMalloc",
            "cnrtMemcpyAsync_V2",
            "cnrtMemsetAsync",
            "cnrtQueueCreate",
            "cnrtNotifierCreate",
            "cnrtPlaceNotifier",
            "cnrtQueryNotifier",
            "cnnlCreate",
            "cnnlSetQueue",
            "cnnlCreateTensorDescriptor",
            "cnnlSetTensorDescriptorEx_v2",
            "cnnlCreateOpTensorDescriptor",
            "cnnlOpTensor",
            "cnnlCreateReduceDescriptor",
            "cnnlGetReduceOpWorkspaceSize",
            "cnnlReduce",
            "cnnlTransform_v2",
            "operator",
            "copy",
        ],
    }
}

fn a_call_that_fails_is_told_and_nothing_is_kept(vendor: NpuVendor) {
    let machine = FakeMachine::new(vendor, &[]);
    let suite = Suite::quick_of(&["rms_norm", "hadamard"]);
    assert_eq!(everything(vendor, &machine, &suite), None);
    let mut told = 0;
    for &call in calls(vendor) {
        for nth in 1..=3 {
            machine.fail(call, nth, codes(vendor)[0]);
            let wrong = everything(vendor, &machine, &suite);
            machine.fail(call, 0, 0);
            // The first call of a name is always made; the later ones may be made by nobody.
            assert!(nth > 1 || wrong.as_ref().is_some_and(|why| !why.is_empty()), "{call} failed and nobody was told");
            told += usize::from(wrong.is_some());
            let stats = machine.stats();
            let held = [stats.bytes, stats.buffers, stats.host_buffers, stats.contexts, stats.streams, stats.events];
            assert_eq!(held, [0; 6], "{call} {nth}: {stats:?}");
            assert_eq!([stats.tensors, stats.descriptions, stats.violations], [0; 3], "{call} {nth}: {stats:?}");
        }
    }
    println!("{told} failures told");
}

fn of_a_lost_device_everything_is_lost_and_nothing_hangs(vendor: NpuVendor) {
    let (machine, backend) = machine(vendor, &[("devices", "2")]);
    let (driver, other) = (backend.driver(0).unwrap(), backend.driver(1).unwrap());
    let slice = buffer_of(&driver, &[1; 64]);
    let reached = driver.signal().unwrap();
    driver.wait(reached, LONG).unwrap();
    let code = codes(vendor)[1];
    machine.fail("copy", 1, code);
    let copy = MemoryCommand::Copy { from: slice.part(0, 4).unwrap(), to: slice.part(4, 4).unwrap() };
    driver.submit(StepCommand::Memory(copy)).unwrap();
    let value = driver.signal().unwrap_or(reached + 1);
    let lost = |error: DriverError| {
        assert!(matches!(&error, DriverError::Lost(why) if why.contains(&code.to_string())), "{error}")
    };
    lost(driver.wait(value, LONG).unwrap_err());
    lost(driver.wait(value + 1, LONG).unwrap_err());
    lost(driver.submit(StepCommand::Memory(MemoryCommand::Fill { slice, byte: 0 })).unwrap_err());
    lost(driver.download(slice).map(drop).unwrap_err());
    lost(driver.signal().map(drop).unwrap_err());
    lost(driver.reached().map(drop).unwrap_err());
    driver.wait(reached, Duration::ZERO).unwrap();
    driver.free(slice.buffer);
    drop(driver);
    assert_eq!(words(&other, buffer_of(&other, &[7])), [7], "another device goes on");
}

fn a_device_without_room_says_how_much_it_has(vendor: NpuVendor) {
    let (_machine, backend) = machine(vendor, &[("memory", "1048576")]);
    let driver = backend.driver(0).unwrap();
    let held = driver.alloc(1 << 19).unwrap();
    let full = driver.alloc((1 << 19) + 1).unwrap_err();
    let wanted = DriverError::OutOfMemory { wanted: 524_289, free: Some(524_288), total: Some(1_048_576) };
    assert_eq!(full, wanted);
    driver.free(held);
    driver.alloc((1 << 19) + 1).unwrap();
}
