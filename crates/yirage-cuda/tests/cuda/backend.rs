//! The backend: what it finds, what it opens, and what it says where something is missing.

use crate::fake::FakeCuda;
use crate::support::backend;
use yirage_cuda::{CudaBackend, CudaVendor};
use yirage_hal::{Backend, HalError, OpenOptions};
use yirage_probe::ProbeEnvironment;

#[test]
#[ignore = "needs a compiler of C++"]
fn devices_are_found_and_opened() {
    let backend = backend();
    let devices = backend.probe().unwrap();
    assert_eq!(devices.len(), 2);
    assert!(devices.iter().all(|info| info.arch == "sm_90" && info.backend == "cuda"), "{devices:?}");
    let options = OpenOptions { threads: Some(3), guarded: true, ..OpenOptions::default() };
    let (device, notes) = backend.open(1, &options).unwrap();
    assert_eq!(device.info().ordinal, 1);
    let facts = &device.info().facts;
    for fact in ["library", "compiler", "ecc"] {
        assert!(facts.iter().any(|(name, _)| *name == fact), "{fact} is not in {facts:?}");
    }
    let limits = device.target().limits;
    assert_eq!((limits.threads, limits.block_bytes), (Some(1024), Some(49_152)));
    assert_eq!(limits.grid, Some([0x7fff_ffff, 65_535, 65_535]));
    assert_eq!(notes.len(), 2, "{notes:?}");
    let none = backend.open(2, &OpenOptions::default()).map(drop).unwrap_err();
    assert_eq!(
        none.to_string(),
        HalError::Option { option: "device", why: "there are 2, and no 2".into() }.to_string()
    );
}

#[test]
#[ignore = "needs a compiler of C++"]
fn without_a_compiler_of_kernels_it_says_how_to_get_one() {
    let machine = FakeCuda::new(&[]);
    let backend = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings_without_compiler());
    assert_eq!(backend.probe().unwrap().len(), 1, "the device is there all the same");
    let error = backend.open(0, &OpenOptions::default()).map(drop).unwrap_err().to_string();
    assert!(error.contains("libnvrtc.so.13") && error.contains("pip install nvidia-cuda-nvrtc"), "{error}");
}

#[test]
fn without_a_driver_it_says_what_is_missing() {
    let none: [(&str, &str); 0] = [];
    let machine = tempfile::tempdir().unwrap();
    let backend = CudaBackend::new(CudaVendor::Nvidia, ProbeEnvironment::new(machine.path(), none));
    let why = backend.probe().unwrap_err();
    assert!(why.why.contains("libcuda.so.1") && why.remedy.contains("driver") && !why.present, "{why}");
    assert!(backend.open(0, &OpenOptions::default()).is_err());
}

#[test]
#[ignore = "needs a compiler of C++"]
fn an_old_driver_and_a_hidden_device_are_told() {
    let machine = FakeCuda::new(&[("FAKE_CUDA_VERSION", "11080")]);
    let old = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings()).probe().unwrap_err();
    assert!(old.why.contains("11.8") && old.why.contains("12.0"), "{old}");
    let machine = FakeCuda::new(&[("FAKE_CUDA_DEVICES", "0")]);
    let none = CudaBackend::new(CudaVendor::Nvidia, machine.surroundings()).probe().unwrap_err();
    assert!(none.why.contains("finds no device") && none.present, "{none}");
}
