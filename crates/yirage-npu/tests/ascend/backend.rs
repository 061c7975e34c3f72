//! The backend: what it finds, what it opens, and what it says where something is missing.

use crate::fake::FakeAcl;
use crate::support::{device, machine};
use yirage_hal::{Backend, OpenOptions};
use yirage_ir::{DType, Format};
use yirage_npu::AscendBackend;
use yirage_probe::ProbeEnvironment;

#[test]
#[ignore = "needs a compiler of C++"]
fn devices_are_found_and_opened() {
    let (machine, backend) = machine(&[("devices", "2")]);
    let devices = backend.probe().unwrap();
    assert_eq!(devices.len(), 2);
    assert!(devices.iter().all(|info| info.arch == "Ascend910B3" && info.backend == "ascend"), "{devices:?}");
    let options = OpenOptions { threads: Some(3), guarded: true, ..OpenOptions::default() };
    let (device, notes) = backend.open(1, &options).unwrap();
    assert_eq!((device.info().ordinal, device.target().activation_dtype), (1, DType::Stored(Format::BF16)));
    assert_eq!(notes.len(), 3, "{notes:?}");
    assert!(notes[2].contains("the host evaluates them") && notes[2].contains("attention"), "{notes:?}");
    let facts = &device.info().facts;
    assert!(facts.iter().any(|(name, value)| *name == "on_host" && value.contains("sample")), "{facts:?}");
    let none = backend.open(2, &OpenOptions::default()).map(drop).unwrap_err().to_string();
    assert!(none.contains("there are 2, and no 2"), "{none}");
    drop(device);
    assert!(machine.stats().is_clean(), "{:?}", machine.stats());
}

#[test]
#[ignore = "needs a compiler of C++"]
fn before_there_was_bf16_activations_are_f16() {
    let (_machine, backend) = machine(&[("chip", "Ascend310P3")]);
    assert_eq!(device(&backend).target().activation_dtype, DType::Stored(Format::F16));
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_library_that_is_missing_is_named_with_what_brings_it() {
    for (library, remedy) in [("libnnopbase.so", "install CANN's toolkit"), ("libopapi.so", "Ascend-cann-kernels")] {
        let machine = FakeAcl::new(&[]).without(library);
        let backend = AscendBackend::new(machine.surroundings());
        assert_eq!(backend.probe().unwrap().len(), 1, "the device is there all the same");
        let error = backend.open(0, &OpenOptions::default()).map(drop).unwrap_err().to_string();
        assert!(error.contains(library) && error.contains(remedy), "{error}");
    }
    let (_machine, old) = machine(&[("version", "0")]);
    let old = old.probe().unwrap_err();
    assert!(old.why.contains("1.0.0 is the oldest"), "{old}");
}

#[test]
fn without_a_driver_it_says_what_is_missing() {
    let none: [(&str, &str); 0] = [];
    let machine = tempfile::tempdir().unwrap();
    let backend = AscendBackend::new(ProbeEnvironment::new(machine.path(), none));
    let why = backend.probe().unwrap_err();
    assert!(why.why.contains("libascendcl.so") && why.remedy.contains("CANN") && !why.present, "{why}");
    assert!(backend.open(0, &OpenOptions::default()).is_err());
}
