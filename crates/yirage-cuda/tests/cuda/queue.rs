//! The streams: signals, deadlines, captured graphs, the clock, several devices, several threads.

use crate::support::{LONG, affine, backend, buffer_of, driver, on, run, words};
use std::sync::Arc;
use std::time::Duration;
use yirage_hal::Record;
use yirage_hal::driver::{BufferSlice, Driver, DriverError, MemoryCommand, StepCommand};

#[test]
#[ignore = "needs a compiler of C++"]
fn signals_are_reached_in_their_order_and_a_wait_ends_at_its_deadline() {
    let driver = driver();
    assert_eq!(driver.reached().unwrap(), 0);
    driver.wait(0, Duration::ZERO).unwrap();
    let values: Vec<u64> = (0..5).map(|_| driver.signal().unwrap()).collect();
    assert_eq!(values, [1, 2, 3, 4, 5]);
    driver.wait(5, LONG).unwrap();
    driver.wait(1, Duration::ZERO).unwrap();
    assert_eq!(driver.reached().unwrap(), 5);
    let never = driver.wait(6, Duration::from_millis(60)).unwrap_err();
    assert_eq!(never, DriverError::Deadline { waited_ms: 60, reached: 5, wanted: 6 });
}

#[test]
#[ignore = "needs a compiler of C++"]
fn kernels_run_in_the_order_of_the_stream() {
    let driver = driver();
    let module = driver.load(&[affine("twice", 200, 2, 0), affine("one_more", 200, 1, 1)]).unwrap();
    let slice = buffer_of(&driver, &[3; 256]);
    for entry in ["twice", "one_more", "twice"] {
        run(&driver, on(module, entry, 4, slice)).unwrap();
    }
    let mut wanted = vec![14; 200];
    wanted.resize(256, 3);
    assert_eq!(words(&driver, slice), wanted);
    let part = slice.part(256, 256).unwrap();
    run(&driver, on(module, "one_more", 1, part)).unwrap();
    assert_eq!(words(&driver, slice)[62..66], [14, 14, 15, 15], "a part of a buffer begins where it lies");
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_captured_graph_does_the_same_as_its_commands() {
    let driver = driver();
    let module = driver.load(&[affine("step", 64, 3, 1)]).unwrap();
    let (x, y) = (buffer_of(&driver, &[1; 64]), buffer_of(&driver, &[9; 64]));
    let empty = BufferSlice { bytes: 0, ..y };
    let commands = || {
        vec![
            StepCommand::Launch(on(module, "step", 1, x)),
            StepCommand::Memory(MemoryCommand::Copy { from: x.part(0, 128).unwrap(), to: y.part(128, 128).unwrap() }),
            StepCommand::Memory(MemoryCommand::Fill { slice: y.part(0, 4).unwrap(), byte: 1 }),
            StepCommand::Memory(MemoryCommand::Fill { slice: empty, byte: 1 }),
        ]
    };
    let capture = driver.graph_capture().unwrap();
    let graph = capture.capture(commands()).unwrap();
    assert_eq!(words(&driver, x), [1; 64], "what is captured does not run");
    capture.replay(graph).unwrap();
    capture.replay(graph).unwrap();
    let replayed = (words(&driver, x), words(&driver, y));
    let again = buffer_of(&driver, &[1; 64]);
    driver.submit(StepCommand::Memory(MemoryCommand::Copy { from: again, to: x })).unwrap();
    for command in commands().into_iter().chain(commands()) {
        driver.submit(command).unwrap();
    }
    assert_eq!((words(&driver, x), words(&driver, y)), replayed);
    driver.unload(module);
    capture.replay(graph).unwrap();
    capture.release(graph);
    assert_eq!(words(&driver, x), [40; 64], "a graph keeps its kernels, and runs when it is let go of right behind");
    let gone = capture.replay(graph).unwrap_err().to_string();
    assert!(gone.contains("there is no captured graph 1"), "{gone}");
    let wrong = capture.capture(vec![StepCommand::Launch(on(module, "step", 1, x))]).unwrap_err().to_string();
    assert!(wrong.contains("there is no module 1"), "{wrong}");
}

#[test]
#[ignore = "needs a compiler of C++"]
fn the_devices_clock_goes_forward() {
    let driver = driver();
    let clock = driver.clock().unwrap();
    let module = driver.load(&[affine("step", 64, 3, 1)]).unwrap();
    let slice = buffer_of(&driver, &[1; 64]);
    let mut stamps = vec![clock.timestamp().unwrap()];
    for _ in 0..50 {
        run(&driver, on(module, "step", 1, slice)).unwrap();
        stamps.push(clock.timestamp().unwrap());
    }
    let value = driver.signal().unwrap();
    driver.wait(value, LONG).unwrap();
    let times: Vec<Duration> = stamps.into_iter().map(|stamp| stamp.take()).collect();
    assert!(times.is_sorted() && times[50] > times[0], "{times:?}");
}

#[test]
#[ignore = "needs a compiler of C++"]
fn a_second_queue_brings_weights() {
    let driver = driver();
    let queue = driver.transfer_queue().unwrap();
    let slice = buffer_of(&driver, &[0; 1024]);
    assert_eq!(words(&driver, slice), [0; 1024], "the first queue is behind it");
    let mut piece = driver.staging(4096).unwrap();
    Arc::get_mut(&mut piece).unwrap().bytes_mut().copy_from_slice(&[7; 4096]);
    queue.upload(piece.clone(), slice).unwrap();
    let value = queue.signal().unwrap();
    queue.wait(value, LONG).unwrap();
    assert_eq!(words(&driver, slice), [0x0707_0707; 1024]);
    assert!(Arc::get_mut(&mut piece).is_some(), "the queue has let go of it");
}

#[test]
#[ignore = "needs a compiler of C++"]
fn devices_copy_from_each_other() {
    let backend = backend();
    let (first, second) = (backend.driver(0).unwrap(), backend.driver(1).unwrap());
    let module = first.load(&[affine("step", 64, 3, 1)]).unwrap();
    let (from, to) = (buffer_of(&first, &[1; 64]), buffer_of(&second, &[0; 64]));
    for _ in 0..20 {
        run(&first, on(module, "step", 1, from)).unwrap();
        second.copy_from(&first, from, to).unwrap();
    }
    // What is submitted there behind the copy does not change what was copied.
    run(&first, on(module, "step", 1, from)).unwrap();
    let wanted = (0..20).fold(1u32, |x, _| x.wrapping_mul(3).wrapping_add(1));
    assert_eq!(words(&second, to), [wanted; 64]);
    first.copy_from(&first, from.part(0, 4).unwrap(), from.part(4, 4).unwrap()).unwrap();
    assert_eq!(words(&first, from), [wanted.wrapping_mul(3).wrapping_add(1); 64]);
}

#[test]
#[ignore = "needs a compiler of C++"]
fn threads_wait_while_others_submit() {
    let driver = driver();
    let module = driver.load(&[affine("step", 64, 1, 1)]).unwrap();
    let slices: Vec<_> = (0..4).map(|_| buffer_of(&driver, &[0; 64])).collect();
    std::thread::scope(|scope| {
        for &slice in &slices {
            let driver = &driver;
            scope.spawn(move || {
                for step in 0..40 {
                    run(driver, on(module, "step", 1, slice)).unwrap();
                    let download = driver.download(slice).unwrap();
                    let value = driver.signal().unwrap();
                    driver.wait(value, LONG).unwrap();
                    assert_eq!(download.take(), Record::of(&[step + 1u32; 64]));
                }
            });
        }
    });
}
