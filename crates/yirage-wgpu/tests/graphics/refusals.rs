//! What is wrong is told, by name and number, and the device goes on.

use crate::support::{LONG, affine, buffer_of, driver, launch, on, rounds, whole, words};
use std::sync::Arc;
use yirage_hal::Record;
use yirage_hal::driver::{
    BindingAccess, BufferId, Driver, DriverError, GraphCapture, MemoryCommand, ModuleId, OperationCall, OperationId,
    StepCommand,
};
use yirage_kir::{BufferOwnership, KernelWriter, ScalarType};

use BindingAccess::{Read, Write};

fn says(error: DriverError, parts: &[&str]) {
    let text = error.to_string();
    parts.iter().for_each(|part| assert!(text.contains(part), "{part:?} is not in {text:?}"));
}

#[test]
#[ignore = "needs a Vulkan device"]
fn bytes_beside_a_buffer_are_refused() {
    let driver = driver();
    let slice = buffer_of(&driver, &[1, 2]);
    let wide = yirage_hal::driver::BufferSlice { bytes: 12, ..slice };
    let late = yirage_hal::driver::BufferSlice { offset: u64::MAX, ..slice };
    for wrong in [wide, late] {
        says(driver.download(wrong).map(drop).unwrap_err(), &["download", "are not in a buffer of 8"]);
        says(driver.upload(Arc::new(Record::zeroed(12)), wrong).unwrap_err(), &["upload", "not in a buffer of 8"]);
        let fill = StepCommand::Memory(MemoryCommand::Fill { slice: wrong, byte: 1 });
        says(driver.submit(fill).unwrap_err(), &["fill", "not in a buffer of 8"]);
        let copy = StepCommand::Memory(MemoryCommand::Copy { from: slice, to: wrong });
        says(driver.submit(copy).unwrap_err(), &["copy", "not in a buffer of 8"]);
    }
    says(driver.upload(Arc::new(Record::zeroed(4)), slice).unwrap_err(), &["4 bytes are given for 8"]);
    let copy = StepCommand::Memory(MemoryCommand::Copy { from: slice, to: slice.part(0, 4).unwrap() });
    says(driver.submit(copy).unwrap_err(), &["8 bytes are given for 4"]);
    let none = whole(BufferId(u64::MAX), 4);
    says(driver.download(none).map(drop).unwrap_err(), &["no buffer"]);
    driver.free(slice.buffer);
    driver.free(slice.buffer);
    says(driver.download(slice).map(drop).unwrap_err(), &["it was given back, or never was"]);
    assert_eq!(words(&driver, buffer_of(&driver, &[7])), [7]);
}

#[test]
#[ignore = "needs a Vulkan device"]
fn launches_that_the_device_does_not_take_are_refused_by_name() {
    let driver = driver();
    let kernels =
        [affine("one", 64, 3, 1), rounds("two", 1, BufferOwnership::Own), rounds("pooled", 1, BufferOwnership::Pooled)];
    let module = driver.load(&kernels).unwrap();
    let slice = buffer_of(&driver, &[1; 256]);
    let part = |at: u64, words: u64| slice.part(at * 4, words * 4).unwrap();
    let try_launch = |entry: &str, bound: &[_]| driver.submit(StepCommand::Launch(launch(module, entry, 1, bound)));
    let other = buffer_of(&driver, &[1; 64]);
    says(driver.submit(on(module, "three", 1, slice)).unwrap_err(), &["the module has no kernel `three`"]);
    says(driver.submit(on(ModuleId(99), "one", 1, slice)).unwrap_err(), &["no module 99"]);
    says(try_launch("one", &[(slice, Write), (other, Read)]).unwrap_err(), &["`one`", "1 buffers, 2 are bound"]);
    says(try_launch("one", &[(part(1, 64), Write)]).unwrap_err(), &["`one`", "offsets are multiples of"]);
    let one_buffer = [(part(0, 64), Read), (part(64, 64), Write)];
    says(
        try_launch("pooled", &[(part(0, 65), Read), (part(64, 64), Write)]).unwrap_err(),
        &["overlap, and one is written"],
    );
    assert_eq!(try_launch("pooled", &one_buffer), Ok(()));
    let mixed = try_launch("two", &one_buffer).unwrap_err();
    says(mixed, &["`two`", "bindings 0 and 1 are of one buffer", "only read"]);
    let mut wide = launch(module, "one", 1, &[(slice, Write)]);
    wide.grid = [1, u32::MAX, 1];
    says(driver.submit(StepCommand::Launch(wide)).unwrap_err(), &["`one`: a grid of", "at most"]);
    let value = driver.signal().unwrap();
    assert_eq!(driver.wait(value, LONG), Ok(()), "what was refused is not there");
}

#[test]
#[ignore = "needs a Vulkan device"]
fn what_this_interface_does_not_do_is_unsupported() {
    let driver = driver();
    let module = driver.load(&[affine("one", 64, 3, 1)]).unwrap();
    let slice = buffer_of(&driver, &[1; 64]);
    let with = |change: fn(&mut yirage_hal::driver::Launch)| {
        let mut launch = launch(module, "one", 1, &[(slice, BindingAccess::ReadWrite)]);
        change(&mut launch);
        driver.submit(StepCommand::Launch(launch))
    };
    let unsupported = |done: Result<(), DriverError>, parts: &[&str]| {
        let error = done.unwrap_err();
        assert!(matches!(error, DriverError::Unsupported { .. }), "{error:?}");
        says(error, parts);
    };
    unsupported(with(|launch| launch.config.cooperative = true), &["a cooperative launch of kernel `one`"]);
    unsupported(with(|launch| launch.config.shared_bytes = 16), &["16 bytes of shared memory"]);
    unsupported(with(|launch| launch.config.arguments = vec![0; 8]), &["an argument of 8 bytes"]);
    says(
        with(|launch| launch.config.block = [32, 1, 1]).unwrap_err(),
        &["groups of [64, 1, 1] threads, not of [32, 1, 1]"],
    );
    assert_eq!(with(|launch| launch.config.early_start = true), Ok(()), "it begins later");
    let operation = OperationCall { operation: OperationId(1), bindings: Vec::new(), workspace: None };
    unsupported(driver.submit(StepCommand::Operation(operation)), &["an operation of a vendor's library"]);
    let peer = crate::support::driver();
    unsupported(driver.copy_from(&peer, slice, slice), &["a copy between devices"]);
    assert!(driver.operations().is_none() && driver.transfer_queue().is_none());
}

#[test]
#[ignore = "needs a Vulkan device"]
fn kernels_that_the_device_does_not_take_are_refused_by_name() {
    let driver = driver();
    let mut crowd = KernelWriter::new("crowd", 1 << 20);
    crowd.thread();
    let crowd = crowd.finish();
    says(driver.load(std::slice::from_ref(&crowd)).unwrap_err(), &["module", "kernel `crowd`"]);
    let mut greedy = KernelWriter::new("greedy", 64);
    let shared = greedy.shared(ScalarType::U32, 1 << 24);
    let thread = greedy.thread();
    greedy.store(shared, thread, thread);
    says(driver.load(&[affine("fine", 64, 1, 1), greedy.finish()]).unwrap_err(), &["kernel `greedy`"]);
    let mut bound = KernelWriter::new("bound", 64);
    for n in 0..1000 {
        bound.buffer(format!("b{n}"), ScalarType::U32, yirage_kir::BufferAccess::Read, BufferOwnership::Own);
    }
    says(driver.load(&[bound.finish()]).unwrap_err(), &["kernel `bound` has 1000 buffers", "at most"]);
    // A driver that ends loops early refuses them; any other one runs them to their end.
    match driver.load(&[rounds("long", 70_000, BufferOwnership::Own)]) {
        Err(error) => says(error, &["a loop of 70000 rounds in kernel `long`", "llvmpipe"]),
        Ok(module) => {
            let (from, to) = (buffer_of(&driver, &[1; 64]), buffer_of(&driver, &[0; 64]));
            driver.submit(StepCommand::Launch(launch(module, "long", 1, &[(from, Read), (to, Write)]))).unwrap();
            let wanted = (0..70_000).fold(1u32, |x, _| x.wrapping_mul(5).wrapping_add(1));
            assert_eq!(words(&driver, to), [wanted; 64]);
        }
    }
    let twice = [affine("fine", 64, 1, 1), affine("fine", 64, 1, 2)];
    says(driver.load(&twice).unwrap_err(), &["two kernels `fine`"]);
    let module = driver.load(&[affine("fine", 64, 1, 1)]).unwrap();
    let slice = buffer_of(&driver, &[1; 64]);
    driver.submit(on(module, "fine", 1, slice)).unwrap();
    assert_eq!(words(&driver, slice), [2; 64]);
}

#[test]
#[ignore = "needs a Vulkan device"]
fn code_that_is_none_is_refused_with_its_place() {
    let driver = driver();
    says(driver.module(&[0xff, 0xfe]).unwrap_err(), &["module", "its code is no text"]);
    let code = yirage_kir::text::print(&affine("fine", 64, 1, 1));
    let changed = code.replacen("store", "dance", 1);
    says(driver.module(changed.as_bytes()).unwrap_err(), &["module", "line ", "dance"]);
    let reserved = yirage_kir::text::print(&affine("fn", 64, 1, 1));
    says(driver.module(reserved.as_bytes()).unwrap_err(), &["module", "`fn`"]);
    let module = driver.module(code.as_bytes()).unwrap();
    let slice = buffer_of(&driver, &[1; 64]);
    driver.submit(on(module, "fine", 1, slice)).unwrap();
    assert_eq!(words(&driver, slice), [2; 64]);
}

#[test]
#[ignore = "needs a Vulkan device"]
fn a_graph_with_a_wrong_command_is_not_captured() {
    let driver = driver();
    let slice = buffer_of(&driver, &[1; 64]);
    let wrong = on(ModuleId(5), "none", 1, slice);
    let fill = StepCommand::Memory(MemoryCommand::Fill { slice, byte: 1 });
    says(driver.capture(vec![fill, wrong]).unwrap_err(), &["no module 5"]);
    assert_eq!(words(&driver, slice), [1; 64], "nothing of it ran");
}
