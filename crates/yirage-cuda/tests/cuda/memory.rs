//! Memory: what is written is there, and what is given back is so when nothing on a stream has it any more.

use crate::support::{LONG, buffer_of, driver, words};
use std::sync::Arc;
use yirage_hal::Record;
use yirage_hal::driver::{BufferId, BufferSlice, Driver, DriverError, MemoryCommand, StepCommand};
use yirage_ir::rng::Rng;

#[test]
#[ignore = "needs a compiler of C++"]
fn memory_is_what_it_would_be_on_the_host() {
    const BYTES: usize = 4099;
    let driver = driver();
    let buffer = driver.alloc(BYTES as u64).unwrap();
    let slice = |at: usize, bytes: usize| BufferSlice { buffer, offset: at as u64, bytes: bytes as u64 };
    driver.submit(StepCommand::Memory(MemoryCommand::Fill { slice: slice(0, BYTES), byte: 0 })).unwrap();
    let (mut twin, mut rng, mut downloads) = (vec![0u8; BYTES], Rng::new(3), Vec::new());
    for _ in 0..400 {
        let (from, to) = (rng.index(BYTES + 1), rng.index(BYTES + 1));
        let (at, bytes) = (from.min(to), from.abs_diff(to));
        match rng.index(4) {
            0 => {
                let new: Vec<u8> = (0..bytes).map(|_| rng.next_u64() as u8).collect();
                driver.upload(Arc::new(Record::of(&new)), slice(at, bytes)).unwrap();
                twin[at..at + bytes].copy_from_slice(&new);
            }
            1 => {
                driver
                    .submit(StepCommand::Memory(MemoryCommand::Fill { slice: slice(at, bytes), byte: 0x5a }))
                    .unwrap();
                twin[at..at + bytes].fill(0x5a);
            }
            2 => downloads.push((driver.download(slice(at, bytes)).unwrap(), twin[at..at + bytes].to_vec())),
            _ => {
                let to = rng.index(BYTES - bytes + 1);
                let done = driver
                    .submit(StepCommand::Memory(MemoryCommand::Copy { from: slice(at, bytes), to: slice(to, bytes) }));
                if at.abs_diff(to) < bytes {
                    assert!(done.unwrap_err().to_string().contains("overlap"));
                } else {
                    done.unwrap();
                    twin.copy_within(at..at + bytes, to);
                }
            }
        }
    }
    downloads.push((driver.download(slice(0, BYTES)).unwrap(), twin));
    let value = driver.signal().unwrap();
    driver.wait(value, LONG).unwrap();
    for (at, (download, wanted)) in downloads.into_iter().enumerate() {
        assert_eq!(download.take(), Record::of(&wanted), "download {at}");
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn what_is_submitted_keeps_what_it_touches() {
    let driver = driver();
    for round in 0..50 {
        let (from, to) = (buffer_of(&driver, &[round; 4]), buffer_of(&driver, &[0; 4]));
        driver.submit(StepCommand::Memory(MemoryCommand::Copy { from, to })).unwrap();
        driver.free(from.buffer);
        assert_eq!(words(&driver, to), [round; 4]);
        driver.free(to.buffer);
    }
}

#[test]
#[ignore = "needs a compiler of C++"]
fn memory_that_was_given_back_is_taken_again_and_too_much_is_told() {
    let driver = driver();
    for _ in 0..40 {
        let bytes = 1 << 30;
        let slice = BufferSlice { buffer: driver.alloc(bytes).unwrap(), offset: 0, bytes };
        // It is on its way back while there is no room for the next one.
        let first = slice.part(0, 4).unwrap();
        driver.submit(StepCommand::Memory(MemoryCommand::Fill { slice: first, byte: 3 })).unwrap();
        driver.free(slice.buffer);
    }
    match driver.alloc(1 << 40).unwrap_err() {
        DriverError::OutOfMemory { wanted, free: Some(free), total: Some(total) } => {
            assert!(wanted == 1 << 40 && free <= total && total < 1 << 40, "{free} of {total}");
        }
        other => panic!("{other}"),
    }
    assert_eq!(words(&driver, buffer_of(&driver, &[9])), [9], "it goes on");
}

#[test]
#[ignore = "needs a compiler of C++"]
fn bytes_beside_a_buffer_are_refused() {
    let driver = driver();
    let slice = buffer_of(&driver, &[1, 2]);
    let says = |error: DriverError, part: &str| assert!(error.to_string().contains(part), "{part:?} is not in {error}");
    for wrong in [BufferSlice { bytes: 12, ..slice }, BufferSlice { offset: u64::MAX, ..slice }] {
        says(driver.download(wrong).map(drop).unwrap_err(), "are not all in buffer 1");
        says(driver.upload(Arc::new(Record::zeroed(12)), wrong).unwrap_err(), "are not all in buffer 1");
        let fill = StepCommand::Memory(MemoryCommand::Fill { slice: wrong, byte: 1 });
        says(driver.submit(fill).unwrap_err(), "are not all in buffer 1");
    }
    says(driver.upload(Arc::new(Record::zeroed(4)), slice).unwrap_err(), "4 bytes are given for 8");
    let copy = MemoryCommand::Copy { from: slice, to: slice.part(0, 4).unwrap() };
    says(driver.submit(StepCommand::Memory(copy)).unwrap_err(), "8 bytes are given for 4");
    says(
        driver.download(BufferSlice { buffer: BufferId(99), ..slice }).map(drop).unwrap_err(),
        "there is no buffer 99",
    );
    driver.free(slice.buffer);
    driver.free(slice.buffer);
    says(driver.download(slice).map(drop).unwrap_err(), "there is no buffer 1");
}
