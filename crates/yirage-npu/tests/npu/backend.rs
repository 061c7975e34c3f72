//! The backend: what it finds, what it opens, and what it says where something is missing.

use crate::fake::FakeMachine;
use crate::support::{chips, device, machine};
use yirage_hal::{Backend, OpenOptions};
use yirage_ir::{DType, Format};
use yirage_npu::{NpuBackend, NpuVendor};
use yirage_probe::ProbeEnvironment;

for_every_maker! {
    devices_are_found_and_opened,
    before_there_was_bf16_activations_are_f16,
    a_library_that_is_missing_is_named_with_what_brings_it,
}

fn devices_are_found_and_opened(vendor: NpuVendor) {
    let (machine, backend) = machine(vendor, &[("devices", "2")]);
    let devices = backend.probe().unwrap();
    assert_eq!(devices.len(), 2);
    let ([(_, arch), _], name) = (chips(vendor), backend.name());
    assert!(devices.iter().all(|info| info.arch == arch && info.backend == name), "{devices:?}");
    assert_eq!(name, if vendor == NpuVendor::Ascend { "ascend" } else { "cambricon" });
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

fn before_there_was_bf16_activations_are_f16(vendor: NpuVendor) {
    let (_machine, backend) = machine(vendor, &[("chip", chips(vendor)[1].0)]);
    assert_eq!(device(&backend).target().activation_dtype, DType::Stored(Format::F16));
}

fn a_library_that_is_missing_is_named_with_what_brings_it(vendor: NpuVendor) {
    let (libraries, oldest) = match vendor {
        NpuVendor::Ascend => (
            [("libnnopbase.so", "install CANN's toolkit"), ("libopapi.so", "Ascend-cann-kernels")],
            "1.0.0 is the oldest",
        ),
        NpuVendor::Cambricon => {
            ([("libcnrt.so", "the package cnrt"), ("libcnnl.so", "the package cnnl")], "4.20.0 is the oldest")
        }
    };
    for (library, remedy) in libraries {
        let machine = FakeMachine::new(vendor, &[]).without(library);
        let backend = NpuBackend::new(vendor, machine.surroundings());
        assert_eq!(backend.probe().unwrap().len(), 1, "the device is there all the same");
        let error = backend.open(0, &OpenOptions::default()).map(drop).unwrap_err().to_string();
        assert!(error.contains(library) && error.contains(remedy), "{error}");
    }
    let (_machine, old) = machine(vendor, &[("version", "0")]);
    let old = old.probe().unwrap_err();
    assert!(old.why.contains(oldest), "{old}");
}

#[test]
fn without_a_driver_it_says_what_is_missing() {
    let none: [(&str, &str); 0] = [];
    let machine = tempfile::tempdir().unwrap();
    for (vendor, library, brings) in
        [(NpuVendor::Ascend, "libascendcl.so", "CANN"), (NpuVendor::Cambricon, "libcndrv.so", "Neuware")]
    {
        let backend = NpuBackend::new(vendor, ProbeEnvironment::new(machine.path(), none));
        let why = backend.probe().unwrap_err();
        assert!(why.why.contains(library) && why.remedy.contains(brings) && !why.present, "{why}");
        assert!(backend.open(0, &OpenOptions::default()).is_err());
    }
}

/// Numbers of the library that no public header has are found by what they do, whatever they are; a conversion that the library
/// has only with another rounding is none, and its elements are the host's.
#[test]
#[ignore = "needs a compiler of C++"]
fn numbers_that_no_header_has_are_found_by_what_they_do() {
    for (numbers, saturates) in [("0", "0"), ("57", "0"), ("5", "1")] {
        let settings = [("numbers", numbers), ("saturates", saturates)];
        let (machine, backend) = machine(NpuVendor::Cambricon, &settings);
        let (device, notes) = backend.open(0, &OpenOptions::default()).unwrap();
        let target = device.target();
        let told = notes.iter().any(|note| note.contains("no operators compute with f16 here"));
        assert_eq!(told, saturates == "1", "{notes:?}");
        assert_eq!(target.activation_dtype, DType::Stored(Format::BF16), "{settings:?}");
        let rules = format!("{:?}", target.kernels[0].rules);
        assert_eq!(
            (rules.contains("Stored(F16)"), rules.contains("Stored(BF16)")),
            (saturates == "0", true),
            "{settings:?}"
        );
        drop(device);
        assert!(machine.stats().is_clean(), "{:?}", machine.stats());
    }
}
