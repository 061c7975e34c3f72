//! Memory and the stream: what is written is there, in its order, and goes back when nothing has it any more.

use crate::support::{LONG, buffer_of, machine, words};
use std::sync::Arc;
use std::time::Duration;
use yirage_hal::Record;
use yirage_hal::driver::{BufferId, BufferSlice, Driver, DriverError, MemoryCommand, StepCommand};
use yirage_ir::rng::Rng;
use yirage_npu::NpuVendor;

for_every_maker! {
    memory_is_what_it_would_be_on_the_host,
    signals_are_reached_in_their_order_and_a_wait_ends_at_its_deadline,
    what_is_submitted_keeps_what_it_touches,
    bytes_beside_a_buffer_and_what_is_not_done_are_refused,
}

fn memory_is_what_it_would_be_on_the_host(vendor: NpuVendor) {
    const BYTES: usize = 4099;
    let (machine, backend) = machine(vendor, &[("delay_us", "60"), ("seed", "5")]);
    let driver = backend.driver(0).unwrap();
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
                let fill = MemoryCommand::Fill { slice: slice(at, bytes), byte: 0x5a };
                driver.submit(StepCommand::Memory(fill)).unwrap();
                twin[at..at + bytes].fill(0x5a);
            }
            2 => downloads.push((driver.download(slice(at, bytes)).unwrap(), twin[at..at + bytes].to_vec())),
            _ => {
                let to = rng.index(BYTES - bytes + 1);
                let copy = MemoryCommand::Copy { from: slice(at, bytes), to: slice(to, bytes) };
                let done = driver.submit(StepCommand::Memory(copy));
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
    driver.free(buffer);
    drop(driver);
    assert!(machine.stats().is_clean(), "{:?}", machine.stats());
}

fn signals_are_reached_in_their_order_and_a_wait_ends_at_its_deadline(vendor: NpuVendor) {
    let (_machine, backend) = machine(vendor, &[]);
    let driver = backend.driver(0).unwrap();
    assert_eq!(driver.reached().unwrap(), 0);
    let values: Vec<u64> = (0..5).map(|_| driver.signal().unwrap()).collect();
    assert_eq!(values, [1, 2, 3, 4, 5]);
    driver.wait(5, LONG).unwrap();
    driver.wait(1, Duration::ZERO).unwrap();
    let never = driver.wait(6, Duration::from_millis(60)).unwrap_err();
    assert_eq!(never, DriverError::Deadline { waited_ms: 60, reached: 5, wanted: 6 });
}

fn what_is_submitted_keeps_what_it_touches(vendor: NpuVendor) {
    let (machine, backend) = machine(vendor, &[("delay_us", "200")]);
    let driver = backend.driver(0).unwrap();
    for round in 0..50 {
        let (from, to) = (buffer_of(&driver, &[round; 4]), buffer_of(&driver, &[0; 4]));
        driver.submit(StepCommand::Memory(MemoryCommand::Copy { from, to })).unwrap();
        driver.free(from.buffer);
        assert_eq!(words(&driver, to), [round; 4]);
        driver.free(to.buffer);
    }
    drop(driver);
    assert!(machine.stats().is_clean(), "{:?}", machine.stats());
}

fn bytes_beside_a_buffer_and_what_is_not_done_are_refused(vendor: NpuVendor) {
    let (_machine, backend) = machine(vendor, &[]);
    let driver = backend.driver(0).unwrap();
    let slice = buffer_of(&driver, &[1, 2]);
    let says = |error: DriverError, part: &str| assert!(error.to_string().contains(part), "{part:?} is not in {error}");
    let wrong = BufferSlice { bytes: 12, ..slice };
    says(driver.download(wrong).map(drop).unwrap_err(), "are not all in buffer 1");
    says(driver.upload(Arc::new(Record::zeroed(4)), slice).unwrap_err(), "4 bytes are given for 8");
    let gone = BufferSlice { buffer: BufferId(99), ..slice };
    says(driver.download(gone).map(drop).unwrap_err(), "there is no buffer 99");
    says(driver.module(&[1]).map(drop).unwrap_err(), "by operators of the vendor's library");
    assert!(driver.graph_capture().is_none() && driver.clock().is_none() && driver.transfer_queue().is_none());
    says(driver.copy_from(&driver, slice, slice).unwrap_err(), "not supported");
    let unknown = driver.operations().unwrap().prepare(&[7; 8], &[]).unwrap_err();
    says(unknown, "none of this device's library");
}
