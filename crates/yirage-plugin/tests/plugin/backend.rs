//! What the example says of itself, and what is refused of it.

use crate::built::{example, examples};
use std::sync::Arc;
use std::time::Duration;
use yirage_hal::driver::{
    BufferId, BufferSlice, CollectiveCall, Driver, DriverError, MemoryCommand, OperationCall, OperationId, StepCommand,
};
use yirage_hal::{Backend, OpenOptions, Record};
use yirage_ir::Format;
use yirage_ir::op::AllReduce;
use yirage_plugin::PluginBackend;

const LONG: Duration = Duration::from_secs(60);

#[test]
#[ignore = "needs compilers of C and C++"]
fn devices_are_described_and_opened() {
    let backend = example();
    let devices = backend.probe().unwrap();
    assert_eq!(devices.len(), 1);
    let info = &devices[0];
    assert_eq!((info.backend, info.name.as_str(), info.arch.as_str()), ("software", "Software device", "emulated"));
    assert_eq!((info.cores, info.total_memory_bytes, info.memory_bytes), (Some(1), None, None));
    assert!(info.software && info.facts.contains(&("plug-in", "a device in software, an example".into())));
    let options = OpenOptions { threads: Some(3), ..OpenOptions::default() };
    let (device, notes) = backend.open(0, &options).unwrap();
    assert_eq!(device.target().limits.subgroup_widths, [32]);
    assert!(notes.len() == 1 && notes[0].contains("`threads`"), "{notes:?}");
    let why = backend.open(1, &OpenOptions::default()).err().unwrap().to_string();
    assert!(why.contains("there are 1, and no 1"), "{why}");
}

#[test]
#[ignore = "needs compilers of C and C++"]
fn memory_is_what_it_would_be_on_the_host_and_nothing_beside_it_is_touched() {
    examples().iter().for_each(memory_of);
}

fn memory_of(backend: &PluginBackend) {
    let driver = backend.driver(0).unwrap();
    let slice = BufferSlice { buffer: driver.alloc(16).unwrap(), offset: 0, bytes: 16 };
    driver.upload(Arc::new(Record::of(&[1u32, 2, 3, 4])), slice).unwrap();
    let download = driver.download(slice.part(4, 8).unwrap()).unwrap();
    let value = driver.signal().unwrap();
    driver.wait(value, LONG).unwrap();
    assert_eq!(download.take().values::<u32>(), [2, 3]);
    let early = driver.download(slice).unwrap();
    assert_eq!(early.take().values::<u32>(), [0; 4], "nothing was signalled behind it");
    for wrong in [BufferSlice { bytes: 17, ..slice }, BufferSlice { offset: u64::MAX, ..slice }] {
        let why = driver.download(wrong).err().unwrap().to_string();
        assert!(why.contains("are beyond a buffer of 16"), "{why}");
    }
    let unknown = BufferSlice { buffer: BufferId(77), ..slice };
    assert!(driver.download(unknown).err().unwrap().to_string().contains("there is no buffer 77"));
    let short = driver.upload(Arc::new(Record::of(&[1u32])), slice).unwrap_err().to_string();
    assert!(short.contains("4 bytes are given for 16"), "{short}");
    assert!(
        matches!(driver.wait(value + 9, Duration::ZERO), Err(DriverError::Deadline { wanted, .. }) if wanted == value + 9)
    );
    assert!(matches!(driver.alloc(u64::MAX), Err(DriverError::OutOfMemory { wanted: u64::MAX, .. })));
    driver.free(slice.buffer);
    driver.free(slice.buffer);
}

/// What is captured does not run until it is replayed, as often as it is, and is gone when it was released; the clock goes on.
#[test]
#[ignore = "needs compilers of C and C++"]
fn captured_commands_run_when_they_are_replayed_and_the_clock_tells_when() {
    for backend in examples() {
        let driver = backend.driver(0).unwrap();
        let slice = |words: u64| BufferSlice { buffer: driver.alloc(words * 4).unwrap(), offset: 0, bytes: words * 4 };
        let (from, to) = (slice(4), slice(4));
        let filled = |byte| StepCommand::Memory(MemoryCommand::Fill { slice: from, byte });
        driver.submit(filled(0)).unwrap();
        driver.submit(StepCommand::Memory(MemoryCommand::Copy { from, to })).unwrap();
        let capture = driver.graph_capture().unwrap();
        let commands = || vec![StepCommand::Memory(MemoryCommand::Copy { from, to }), filled(7)];
        let graph = capture.capture(commands()).unwrap();
        let stamps = [driver.clock().unwrap().timestamp().unwrap(), {
            capture.replay(graph).unwrap();
            capture.replay(graph).unwrap();
            driver.clock().unwrap().timestamp().unwrap()
        }];
        let download = driver.download(to).unwrap();
        let value = driver.signal().unwrap();
        driver.wait(value, LONG).unwrap();
        assert_eq!(
            download.take().values::<u32>(),
            [0x0707_0707; 4],
            "the second replay copies what the first one filled"
        );
        let [began, ended] = stamps.map(yirage_hal::driver::Timestamp::take);
        assert!(began <= ended, "{began:?} {ended:?}");
        let outside = BufferSlice { bytes: 99, ..to };
        let wrong = vec![filled(9), StepCommand::Memory(MemoryCommand::Fill { slice: outside, byte: 1 })];
        assert!(capture.capture(wrong).unwrap_err().to_string().contains("are beyond a buffer of 16"));
        capture.release(graph);
        assert!(capture.replay(graph).unwrap_err().to_string().contains("there is no captured graph"));
        let again = capture.capture(commands()).unwrap();
        capture.release(again);
    }
}

/// What the interface does not have is refused by name, and nothing of it reaches the library.
#[test]
#[ignore = "needs compilers of C and C++"]
fn what_a_plug_in_does_not_do_is_unsupported() {
    let driver = example().driver(0).unwrap();
    let slice = BufferSlice { buffer: driver.alloc(16).unwrap(), offset: 0, bytes: 16 };
    let (op, dtype) = (AllReduce { ranks: 2 }.into(), Format::F32.into());
    let sum = CollectiveCall { op, dtype, rows: 1, width: 4, from: slice, to: slice };
    let call = OperationCall { operation: OperationId(1), bindings: Vec::new(), workspace: None };
    for command in [StepCommand::Collective(sum), StepCommand::Operation(call)] {
        let refused = driver.submit(command).unwrap_err();
        assert!(
            matches!(&refused, DriverError::Unsupported { what, .. } if what.contains("with other devices")),
            "{refused}"
        );
    }
    assert!(driver.operations().is_none() && driver.transfer_queue().is_none());
}

#[test]
fn names_and_paths_are_checked() {
    for name in ["", "Software", "9", "a b", "a/b", &"a".repeat(33)] {
        let why = PluginBackend::new(name, "/lib/x.so".as_ref()).err().unwrap().to_string();
        assert!(why.contains("lower-case letters") && why.contains(name), "{why}");
    }
    let why = PluginBackend::new("mine", "x.so".as_ref()).err().unwrap().to_string();
    assert!(why.contains("absolute path, got `x.so`"), "{why}");
    let nothing = PluginBackend::new("mine", "/no/such/library.so".as_ref()).unwrap();
    let why = nothing.probe().unwrap_err();
    assert!(
        why.backend == "mine" && why.why.contains("/no/such/library.so") && why.remedy.contains("YIRAGE_PLUGINS"),
        "{why}"
    );
}
