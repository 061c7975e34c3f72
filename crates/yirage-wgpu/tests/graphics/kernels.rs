//! Kernels: what they compute, in which order, and captured.

use crate::support::{THREADS, affine, buffer_of, driver, launch, on, rounds, words};
use yirage_hal::driver::{BindingAccess, Driver, GraphCapture, MemoryCommand, StepCommand};
use yirage_kir::BufferOwnership;

/// `x * 5 + 1` so often.
fn five(x: u32, rounds: u32) -> u32 {
    (0..rounds).fold(x, |x, _| x.wrapping_mul(5).wrapping_add(1))
}

#[test]
#[ignore = "needs a Vulkan device"]
fn a_kernel_computes_for_every_thread_of_every_group() {
    let driver = driver();
    let count = 1000;
    let module = driver.load(&[affine("twice", count, 2, 1)]).unwrap();
    let slice = buffer_of(&driver, &(0..1024).collect::<Vec<_>>());
    driver.submit(on(module, "twice", count.div_ceil(THREADS), slice)).unwrap();
    let wanted: Vec<u32> = (0..1024).map(|x| if x < count { 2 * x + 1 } else { x }).collect();
    assert_eq!(words(&driver, slice), wanted);
}

#[test]
#[ignore = "needs a Vulkan device"]
fn commands_run_in_their_order_however_they_are_submitted() {
    let driver = driver();
    let module = driver.load(&[affine("a", 64, 3, 1), affine("b", 64, 1, 7)]).unwrap();
    let slices: Vec<_> = (0..3).map(|n| buffer_of(&driver, &[n; 64])).collect();
    let mut wanted = [0u32, 1, 2];
    for step in 0..1500_usize {
        let (which, entry) = (step % 3, if step % 5 < 2 { "a" } else { "b" });
        driver.submit(on(module, entry, 1, slices[which])).unwrap();
        let (times, plus) = if entry == "a" { (3, 1) } else { (1, 7) };
        wanted[which] = wanted[which].wrapping_mul(times).wrapping_add(plus);
        if step % 11 == 0 {
            let (from, to) = (slices[which], slices[(which + 1) % 3]);
            driver.submit(StepCommand::Memory(MemoryCommand::Copy { from, to })).unwrap();
            wanted[(which + 1) % 3] = wanted[which];
        }
        if step % 7 == 0 {
            driver.signal().unwrap();
        }
    }
    for (slice, wanted) in slices.into_iter().zip(wanted) {
        assert_eq!(words(&driver, slice), [wanted; 64]);
    }
}

#[test]
#[ignore = "needs a Vulkan device"]
fn parts_of_one_buffer_are_bound_beside_each_other() {
    let driver = driver();
    let module = driver.load(&[rounds("once", 1, BufferOwnership::Pooled)]).unwrap();
    let all = buffer_of(&driver, &(0..256).collect::<Vec<_>>());
    let part = |at: u64| all.part(at * 256, 256).unwrap();
    let bound = [(part(0), BindingAccess::Read), (part(2), BindingAccess::Write)];
    driver.submit(StepCommand::Launch(launch(module, "once", 1, &bound))).unwrap();
    let mut wanted: Vec<u32> = (0..256).collect();
    (0..64).for_each(|at| wanted[128 + at] = five(at as u32, 1));
    assert_eq!(words(&driver, all), wanted);
}

#[test]
#[ignore = "needs a Vulkan device"]
fn an_upload_overtakes_nothing() {
    let driver = driver();
    let module = driver.load(&[rounds("many", 20_000, BufferOwnership::Own)]).unwrap();
    let from = buffer_of(&driver, &[1; 64]);
    let results: Vec<_> = (0..6).map(|_| buffer_of(&driver, &[0; 64])).collect();
    for (n, &to) in (0..).zip(&results) {
        let record = std::sync::Arc::new(yirage_hal::Record::of(&[n; 64]));
        driver.upload(record, from).unwrap();
        let bound = [(from, BindingAccess::Read), (to, BindingAccess::Write)];
        driver.submit(StepCommand::Launch(launch(module, "many", 1, &bound))).unwrap();
        if n % 2 == 0 {
            driver.signal().unwrap();
        }
    }
    for (n, to) in (0..).zip(results) {
        assert_eq!(words(&driver, to), [five(n, 20_000); 64]);
    }
}

#[test]
#[ignore = "needs a Vulkan device"]
fn a_captured_graph_does_what_its_commands_do() {
    let commands = |module, slices: &[_]| {
        let [a, b, c]: [yirage_hal::driver::BufferSlice; 3] = slices.to_vec().try_into().unwrap();
        vec![
            on(module, "a", 1, a),
            StepCommand::Memory(MemoryCommand::Copy { from: a, to: b }),
            on(module, "b", 1, b),
            StepCommand::Memory(MemoryCommand::Copy { from: b.part(3, 9).unwrap(), to: c.part(1, 9).unwrap() }),
            on(module, "a", 1, c),
            StepCommand::Memory(MemoryCommand::Copy { from: c.part(0, 100).unwrap(), to: c.part(101, 100).unwrap() }),
            StepCommand::Memory(MemoryCommand::Fill { slice: b.part(250, 5).unwrap(), byte: 0xee }),
        ]
    };
    let driver = driver();
    let module = driver.load(&[affine("a", 64, 3, 1), affine("b", 64, 1, 7)]).unwrap();
    let new = || (0..3).map(|n| buffer_of(&driver, &[n; 64])).collect::<Vec<_>>();
    let (stepped, replayed) = (new(), new());
    let graph = driver.capture(commands(module, &replayed)).unwrap();
    let capture = driver.graph_capture().unwrap();
    for round in 0..20 {
        commands(module, &stepped).into_iter().for_each(|command| driver.submit(command).unwrap());
        capture.replay(graph).unwrap();
        if round % 3 == 0 {
            driver.signal().unwrap();
        }
    }
    for (a, b) in stepped.iter().zip(&replayed) {
        assert_eq!(words(&driver, *a), words(&driver, *b));
    }
    capture.replay(graph).unwrap();
    capture.release(graph);
    assert_ne!(words(&driver, replayed[0]), words(&driver, stepped[0]), "what was submitted runs");
    let error = capture.replay(graph).unwrap_err().to_string();
    assert!(error.contains("no captured graph"), "{error}");
}

#[test]
#[ignore = "needs a Vulkan device"]
fn kernels_of_two_modules_are_made_once_and_stay_for_who_has_them() {
    let driver = driver();
    let first = driver.load(&[affine("a", 64, 3, 1)]).unwrap();
    let second = driver.load(&[affine("a", 64, 3, 1), affine("b", 64, 1, 7)]).unwrap();
    driver.unload(first);
    let slice = buffer_of(&driver, &[1; 64]);
    driver.submit(on(second, "a", 1, slice)).unwrap();
    driver.submit(on(second, "b", 1, slice)).unwrap();
    driver.unload(second);
    assert_eq!(words(&driver, slice), [11; 64]);
    let error = driver.submit(on(first, "a", 1, slice)).unwrap_err().to_string();
    assert!(error.contains("no module"), "{error}");
}
