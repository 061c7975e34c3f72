//! The queue: signals, deadlines, the device's clock, several threads.

use crate::support::{LONG, affine, buffer_of, driver, launch, on, rounds, words};
use std::time::{Duration, Instant};
use yirage_hal::driver::{BindingAccess, Driver, DriverError, StepCommand};
use yirage_kir::BufferOwnership;

#[test]
#[ignore = "needs a Vulkan device"]
fn signals_are_reached_in_their_order() {
    let driver = driver();
    assert_eq!(driver.reached().unwrap(), 0);
    driver.wait(0, Duration::ZERO).unwrap();
    let values: Vec<u64> = (0..5).map(|_| driver.signal().unwrap()).collect();
    assert_eq!(values, [1, 2, 3, 4, 5]);
    driver.wait(3, LONG).unwrap();
    assert!(driver.reached().unwrap() >= 3);
    driver.wait(5, LONG).unwrap();
    driver.wait(1, Duration::ZERO).unwrap();
    assert_eq!(driver.reached().unwrap(), 5);
}

#[test]
#[ignore = "needs a Vulkan device"]
fn a_wait_ends_at_its_deadline() {
    let driver = driver();
    let value = driver.signal().unwrap();
    driver.wait(value, LONG).unwrap();
    let began = Instant::now();
    let never = driver.wait(value + 1, Duration::from_millis(60)).unwrap_err();
    assert_eq!(never, DriverError::Deadline { waited_ms: 60, reached: value, wanted: value + 1 });
    assert!(began.elapsed() >= Duration::from_millis(60));
    let value = driver.signal().unwrap();
    driver.wait(value, LONG).unwrap();
}

#[test]
#[ignore = "needs a Vulkan device"]
fn the_devices_clock_goes_forward() {
    let driver = driver();
    let Some(clock) = driver.clock() else { return assert!(driver.clock().is_none()) };
    let module = driver.load(&[rounds("long", 60_000, BufferOwnership::Own)]).unwrap();
    let (from, to) = (buffer_of(&driver, &[1; 64]), buffer_of(&driver, &[0; 64]));
    let bound = [(from, BindingAccess::Read), (to, BindingAccess::Write)];
    let mut stamps = vec![clock.timestamp().unwrap()];
    // More than a submission has room for.
    for step in 0..150 {
        if step % 10 == 0 {
            driver.submit(StepCommand::Launch(launch(module, "long", 1, &bound))).unwrap();
        }
        stamps.push(clock.timestamp().unwrap());
    }
    let value = driver.signal().unwrap();
    driver.wait(value, LONG).unwrap();
    let times: Vec<Duration> = stamps.into_iter().map(|stamp| stamp.take()).collect();
    assert!(times[0] > Duration::ZERO && times.is_sorted(), "{times:?}");
    assert!(times[150] > times[0], "{times:?}");
}

#[test]
#[ignore = "needs a Vulkan device"]
fn threads_wait_while_others_submit() {
    let driver = driver();
    let module = driver.load(&[affine("a", 64, 1, 1)]).unwrap();
    let slices: Vec<_> = (0..4).map(|_| buffer_of(&driver, &[0; 64])).collect();
    std::thread::scope(|scope| {
        for &slice in &slices {
            let driver = &driver;
            scope.spawn(move || {
                for step in 0..100 {
                    driver.submit(on(module, "a", 1, slice)).unwrap();
                    let download = driver.download(slice).unwrap();
                    let value = driver.signal().unwrap();
                    driver.wait(value, LONG).unwrap();
                    assert_eq!(download.take().values::<u32>(), [step + 1; 64]);
                }
            });
        }
    });
    slices.into_iter().for_each(|slice| assert_eq!(words(&driver, slice), [100; 64]));
}
