//! Devices and commands of these tests.

use crate::fake::FakeAcl;
use std::sync::Arc;
use std::time::Duration;
use yirage_hal::driver::{BufferSlice, Driver};
use yirage_hal::{Backend, Device, OpenOptions, Record};
use yirage_npu::{AscendBackend, AscendDriver};

pub(crate) const LONG: Duration = Duration::from_secs(100);

/// A machine and its backend.
pub(crate) fn machine(settings: &[(&str, &str)]) -> (FakeAcl, AscendBackend) {
    let machine = FakeAcl::new(settings);
    let backend = AscendBackend::new(machine.surroundings());
    (machine, backend)
}

/// The first device with its operators.
pub(crate) fn device(backend: &AscendBackend) -> Arc<dyn Device> {
    backend.open(0, &OpenOptions::default()).unwrap().0
}

/// A new buffer with these words.
pub(crate) fn buffer_of(driver: &AscendDriver, words: &[u32]) -> BufferSlice {
    let bytes = size_of_val(words) as u64;
    let slice = BufferSlice { buffer: driver.alloc(bytes).unwrap(), offset: 0, bytes };
    driver.upload(Arc::new(Record::of(words)), slice).unwrap();
    slice
}

/// What is in a slice once everything submitted has run.
pub(crate) fn words(driver: &AscendDriver, slice: BufferSlice) -> Vec<u32> {
    let download = driver.download(slice).unwrap();
    let value = driver.signal().unwrap();
    driver.wait(value, LONG).unwrap();
    download.take().values().to_vec()
}
