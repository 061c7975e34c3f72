//! Memory: what is written is there, what is beside it stays, and what is given back comes back.

use crate::support::{LONG, buffer_of, driver, read, whole, words};
use std::sync::Arc;
use yirage_hal::Record;
use yirage_hal::driver::{BufferId, BufferSlice, Download, Driver, DriverError, MemoryCommand, StepCommand};
use yirage_ir::rng::Rng;
use yirage_wgpu::WgpuDriver;

/// Memory of the host that is told the same as the device's.
struct Twin {
    driver: WgpuDriver,
    buffers: Vec<(BufferId, Vec<u8>)>,
    rng: Rng,
    downloads: Vec<(Box<dyn Download>, Vec<u8>)>,
}

impl Twin {
    fn new(seed: u64, sizes: &[usize]) -> Twin {
        let driver = driver();
        let buffers = sizes.iter().map(|&bytes| (driver.alloc(bytes as u64).unwrap(), vec![0; bytes])).collect();
        let mut twin = Twin { driver, buffers, rng: Rng::new(seed), downloads: Vec::new() };
        for (buffer, &bytes) in sizes.iter().enumerate() {
            twin.fill(buffer, 0, bytes, 0);
        }
        twin
    }

    fn below(&mut self, bound: usize) -> usize {
        self.rng.index(bound)
    }

    /// Bytes somewhere: of words, or of anything.
    fn somewhere(&mut self, buffer: usize) -> (usize, usize) {
        let all = self.buffers[buffer].1.len();
        let (from, to) = (self.below(all + 1), self.below(all + 1));
        let unit = if self.below(3) == 0 { 4 } else { 1 };
        let (from, to) = (from.min(to) / unit * unit, from.max(to) / unit * unit);
        (from, to - from)
    }

    fn slice(&self, buffer: usize, offset: usize, bytes: usize) -> BufferSlice {
        BufferSlice { buffer: self.buffers[buffer].0, offset: offset as u64, bytes: bytes as u64 }
    }

    fn fill(&mut self, buffer: usize, at: usize, bytes: usize, byte: u8) {
        let slice = self.slice(buffer, at, bytes);
        self.driver.submit(StepCommand::Memory(MemoryCommand::Fill { slice, byte })).unwrap();
        self.buffers[buffer].1[at..at + bytes].fill(byte);
    }

    fn upload(&mut self, buffer: usize, at: usize, bytes: usize) {
        let new: Vec<u8> = (0..bytes).map(|_| self.rng.next_u64() as u8).collect();
        self.driver.upload(Arc::new(Record::of(&new)), self.slice(buffer, at, bytes)).unwrap();
        self.buffers[buffer].1[at..at + bytes].copy_from_slice(&new);
    }

    fn copy(&mut self) {
        let (a, b) = (self.below(self.buffers.len()), self.below(self.buffers.len()));
        let ((from, bytes), to_all) = (self.somewhere(a), self.buffers[b].1.len());
        let bytes = bytes.min(to_all);
        let to = self.below(to_all - bytes + 1);
        let to = if self.below(2) == 0 { to / 4 * 4 } else { to };
        let (slice, other) = (self.slice(a, from, bytes), self.slice(b, to, bytes));
        let command = StepCommand::Memory(MemoryCommand::Copy { from: slice, to: other });
        if slice.overlaps(&other) {
            let error = self.driver.submit(command).unwrap_err();
            return assert!(error.to_string().contains("of one buffer overlap"), "{error}");
        }
        self.driver.submit(command).unwrap();
        let copied = self.buffers[a].1[from..from + bytes].to_vec();
        self.buffers[b].1[to..to + bytes].copy_from_slice(&copied);
    }

    fn step(&mut self) {
        let buffer = self.below(self.buffers.len());
        let (at, bytes) = self.somewhere(buffer);
        match self.below(6) {
            0 => self.upload(buffer, at, bytes),
            1 => {
                let byte = [0, 0, 0x5a][self.below(3)];
                self.fill(buffer, at, bytes, byte);
            }
            2 | 3 => self.copy(),
            4 => {
                let download = self.driver.download(self.slice(buffer, at, bytes)).unwrap();
                self.downloads.push((download, self.buffers[buffer].1[at..at + bytes].to_vec()));
            }
            _ => {
                let value = self.driver.signal().unwrap();
                if self.below(2) == 0 {
                    self.driver.wait(value, LONG).unwrap();
                }
            }
        }
    }

    /// What every download gave, and what is there at the end.
    fn check(mut self) {
        for buffer in 0..self.buffers.len() {
            let all = self.buffers[buffer].1.clone();
            let download = self.driver.download(self.slice(buffer, 0, all.len())).unwrap();
            self.downloads.push((download, all));
        }
        let value = self.driver.signal().unwrap();
        self.driver.wait(value, LONG).unwrap();
        for (at, (download, wanted)) in self.downloads.into_iter().enumerate() {
            assert_eq!(download.take(), Record::of(&wanted), "download {at}");
        }
    }
}

#[test]
#[ignore = "needs a Vulkan device"]
fn memory_is_what_it_would_be_on_the_host() {
    for seed in 0..8 {
        let mut twin = Twin::new(seed, &[1, 7, 64, 1000, 4099, 70_001]);
        for _ in 0..150 {
            twin.step();
        }
        twin.check();
    }
}

#[test]
#[ignore = "needs a Vulkan device"]
fn a_thousand_small_buffers_are_apart() {
    let driver = driver();
    let slices: Vec<BufferSlice> = (0..1000).map(|n| buffer_of(&driver, &[n, n + 1])).collect();
    let mut numbers: Vec<u64> = slices.iter().map(|slice| slice.buffer.0).collect();
    numbers.dedup();
    assert_eq!(numbers.len(), 1000);
    for (n, &slice) in (0..).zip(&slices) {
        if n % 37 == 0 {
            assert_eq!(words(&driver, slice), [n, n + 1]);
        }
    }
    slices.iter().for_each(|slice| driver.free(slice.buffer));
    let again = driver.alloc(8).unwrap();
    assert!(slices.iter().all(|slice| slice.buffer != again), "no number is given twice");
}

#[test]
#[ignore = "needs a Vulkan device"]
fn memory_that_was_given_back_is_taken_again() {
    let driver = driver();
    // Far more in all than any machine of a test has.
    for round in 0..2000_u32 {
        let bytes = 64 << 20;
        let slice = whole(driver.alloc(bytes).unwrap(), bytes);
        if round % 400 == 0 {
            driver.submit(StepCommand::Memory(MemoryCommand::Fill { slice, byte: 3 })).unwrap();
            assert_eq!(read(&driver, slice.part(bytes - 4, 4).unwrap()), Record::of(&[3u8; 4]));
        }
        driver.free(slice.buffer);
    }
}

#[test]
#[ignore = "needs a Vulkan device"]
fn what_is_submitted_keeps_what_it_touches() {
    let driver = driver();
    let (from, to) = (buffer_of(&driver, &[1, 2, 3, 4]), buffer_of(&driver, &[0; 4]));
    driver.submit(StepCommand::Memory(MemoryCommand::Copy { from, to })).unwrap();
    driver.free(from.buffer);
    assert_eq!(words(&driver, to), [1, 2, 3, 4]);
}

#[test]
#[ignore = "needs a Vulkan device"]
fn a_buffer_that_no_device_has_is_refused() {
    let driver = driver();
    for bytes in [u64::MAX, 1 << 62, 1 << 45] {
        match driver.alloc(bytes).unwrap_err() {
            DriverError::Unsupported { what, why } => {
                assert!(what.contains(&bytes.to_string()) && why.contains("at most"), "{what}: {why}");
            }
            other => panic!("{other}"),
        }
    }
    assert_eq!(words(&driver, buffer_of(&driver, &[9])), [9], "it goes on");
}

#[test]
#[ignore = "needs a Vulkan device"]
fn a_download_that_nobody_takes_is_no_error() {
    let driver = driver();
    let slice = buffer_of(&driver, &[5; 100]);
    for _ in 0..50 {
        drop(driver.download(slice).unwrap());
        let value = driver.signal().unwrap();
        drop(driver.download(slice).unwrap());
        driver.wait(value, LONG).unwrap();
    }
    let late = driver.download(slice).unwrap();
    let value = driver.signal().unwrap();
    drop(late);
    driver.wait(value, LONG).unwrap();
    assert_eq!(words(&driver, slice), [5; 100]);
}
