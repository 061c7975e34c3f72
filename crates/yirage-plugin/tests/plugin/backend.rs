//! What the example says of itself, and what is refused of it.

use crate::built::example;
use std::sync::Arc;
use std::time::Duration;
use yirage_hal::driver::{BufferId, BufferSlice, Driver, DriverError};
use yirage_hal::{Backend, OpenOptions, Record};
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
    let driver = example().driver(0).unwrap();
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
