//! Devices and commands of these tests, which run for every maker.

use crate::fake::FakeMachine;
use std::sync::Arc;
use std::time::Duration;
use yirage_hal::driver::{BufferSlice, Driver};
use yirage_hal::{Backend, Device, OpenOptions, Record};
use yirage_npu::{NpuBackend, NpuDriver, NpuVendor};

/// Tests of functions that are given a maker, for each of them.
macro_rules! for_every_maker {
    ($($name:ident,)*) => {
        mod ascend {
            $(#[test]
            #[ignore = "needs a compiler of C++"]
            fn $name() {
                super::$name(yirage_npu::NpuVendor::Ascend);
            })*
        }
        mod cambricon {
            $(#[test]
            #[ignore = "needs a compiler of C++"]
            fn $name() {
                super::$name(yirage_npu::NpuVendor::Cambricon);
            })*
        }
    };
}

/// What a maker answers: a failure, a lost device, no memory.
pub(crate) fn codes(vendor: NpuVendor) -> [i32; 3] {
    match vendor {
        NpuVendor::Ascend => [500_002, 507_015, 207_001],
        NpuVendor::Cambricon => [100_007, 100_132, 100_100],
    }
}

/// A chip with bf16 and one without, as the libraries name them and as targets do.
pub(crate) fn chips(vendor: NpuVendor) -> [(&'static str, &'static str); 2] {
    match vendor {
        NpuVendor::Ascend => [("Ascend910B3", "Ascend910B3"), ("Ascend310P3", "Ascend310P3")],
        NpuVendor::Cambricon => [("MLU370-S4", "MLU370"), ("MLU270-X5K", "MLU270")],
    }
}

pub(crate) const LONG: Duration = Duration::from_secs(100);

/// A machine and its backend.
pub(crate) fn machine(vendor: NpuVendor, settings: &[(&str, &str)]) -> (FakeMachine, NpuBackend) {
    let machine = FakeMachine::new(vendor, settings);
    let backend = NpuBackend::new(vendor, machine.surroundings());
    (machine, backend)
}

/// The first device with its operators.
pub(crate) fn device(backend: &NpuBackend) -> Arc<dyn Device> {
    backend.open(0, &OpenOptions::default()).unwrap().0
}

/// A new buffer with these words.
pub(crate) fn buffer_of(driver: &NpuDriver, words: &[u32]) -> BufferSlice {
    let bytes = size_of_val(words) as u64;
    let slice = BufferSlice { buffer: driver.alloc(bytes).unwrap(), offset: 0, bytes };
    driver.upload(Arc::new(Record::of(words)), slice).unwrap();
    slice
}

/// What is in a slice once everything submitted has run.
pub(crate) fn words(driver: &NpuDriver, slice: BufferSlice) -> Vec<u32> {
    let download = driver.download(slice).unwrap();
    let value = driver.signal().unwrap();
    driver.wait(value, LONG).unwrap();
    download.take().values().to_vec()
}
