//! The queue of a device: a thread that runs commands one after the other.

use crate::faults::Countdown;
use crate::kernel::Module;
use crate::memory::SimMemory;
use crate::settings::Settings;
use crate::timeline::Timeline;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use yirage_hal::driver::{Address, DriverError, KernelArg};
use yirage_hal::{HostMemory, Record};
use yirage_ir::rng::Rng;

/// What a queue is told.
pub(crate) enum Command {
    Fill { at: Address, byte: u8, bytes: u64 },
    Upload { from: Arc<dyn HostMemory>, to: Address },
    Download { from: Address, bytes: u64, into: Arc<Mutex<Record>> },
    Copy { from: Address, to: Address, bytes: u64 },
    Lend { from: Address, bytes: u64, to: Sender<Vec<u8>> },
    Borrow { from: Receiver<Vec<u8>>, to: Address },
    Launch(SimLaunch),
    Replay(Arc<[SimLaunch]>),
    Free(Address),
    Unload(u64),
    Signal(u64),
    Stop,
}

/// A kernel and what it is called with.
#[derive(Clone, Debug)]
pub(crate) struct SimLaunch {
    pub(crate) module: u64,
    pub(crate) node: usize,
    pub(crate) args: Vec<KernelArg>,
}

/// What a queue and its driver both have.
#[derive(Debug)]
pub(crate) struct SimDeviceState {
    memory: Mutex<SimMemory>,
    modules: Mutex<HashMap<u64, Arc<Module>>>,
    pub(crate) timeline: Timeline,
    busy_nanos: AtomicU64,
}

impl SimDeviceState {
    pub(crate) fn new(memory: u64) -> SimDeviceState {
        let (memory, timeline) = (Mutex::new(SimMemory::new(memory)), Timeline::default());
        SimDeviceState { memory, modules: Mutex::default(), timeline, busy_nanos: AtomicU64::new(0) }
    }

    /// Time in which the queue ran commands.
    pub(crate) fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_nanos.load(Ordering::Relaxed))
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, SimMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn modules(&self) -> MutexGuard<'_, HashMap<u64, Arc<Module>>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queue's side.
pub(crate) struct SimQueue {
    shared: Arc<SimDeviceState>,
    delays: Rng,
    delay: Duration,
    step: Duration,
    kernel_fault: Countdown,
    lost_fault: Countdown,
    /// The first error since the last signal. What follows it does not run.
    error: Option<DriverError>,
}

impl SimQueue {
    pub(crate) fn new(shared: Arc<SimDeviceState>, settings: &Settings, ordinal: u32) -> SimQueue {
        SimQueue {
            shared,
            delays: Rng::new(settings.seed.wrapping_add(u64::from(ordinal))),
            delay: settings.delay,
            step: settings.step,
            kernel_fault: Countdown::new(settings.faults.kernel),
            lost_fault: Countdown::new(settings.faults.lost),
            error: None,
        }
    }

    /// Runs commands until it is told to stop.
    pub(crate) fn run(mut self, commands: &Receiver<Command>) {
        while let Ok(command) = commands.recv() {
            let began = Instant::now();
            match command {
                Command::Stop => return,
                // What was taken is given back whatever became of the device.
                Command::Free(at) => {
                    let freed = self.shared.memory().free(at);
                    self.note(freed);
                }
                Command::Unload(module) => drop(self.shared.modules().remove(&module)),
                command => self.obey(command),
            }
            self.shared.busy_nanos.fetch_add(began.elapsed().as_nanos() as u64, Ordering::Relaxed);
        }
    }

    fn obey(&mut self, command: Command) {
        if self.shared.timeline.check_lost().is_err() {
            return;
        }
        if self.lost_fault.strikes() {
            return self.shared.timeline.lose("it was ordered to be");
        }
        if !self.delay.is_zero() {
            std::thread::sleep(self.delay.mul_f64(f64::from(self.delays.unit_f32())));
        }
        if let Command::Signal(value) = command {
            if !self.step.is_zero() {
                std::thread::sleep(self.step);
            }
            return self.shared.timeline.signal(value, self.error.take());
        }
        if self.error.is_none() {
            let done = self.work(command);
            self.note(done);
        }
    }

    fn note(&mut self, done: Result<(), DriverError>) {
        if let Err(error) = done {
            self.error.get_or_insert(error);
        }
    }

    fn work(&mut self, command: Command) -> Result<(), DriverError> {
        match command {
            Command::Fill { at, byte, bytes } => self.shared.memory().write(at, bytes)?.fill(byte),
            Command::Upload { from, to } => {
                let from = from.bytes();
                self.shared.memory().write(to, from.len() as u64)?.copy_from_slice(from);
            }
            Command::Download { from, bytes, into } => {
                let record = Record::of(self.shared.memory().read(from, bytes)?);
                *into.lock().unwrap_or_else(PoisonError::into_inner) = record;
            }
            Command::Copy { from, to, bytes } => {
                let mut memory = self.shared.memory();
                let copy = memory.read(from, bytes)?.to_vec();
                memory.write(to, bytes)?.copy_from_slice(&copy);
            }
            Command::Lend { from, bytes, to } => {
                let copy = self.shared.memory().read(from, bytes)?.to_vec();
                // Where nobody waits for it any more, the other device is gone.
                let _ = to.send(copy);
            }
            Command::Borrow { from, to } => {
                let gone = |_| DriverError::Failed { call: "copy", why: "the other device gave nothing".into() };
                let bytes = from.recv().map_err(gone)?;
                self.shared.memory().write(to, bytes.len() as u64)?.copy_from_slice(&bytes);
            }
            Command::Launch(call) => self.call(&call)?,
            Command::Replay(calls) => calls.iter().try_for_each(|call| self.call(call))?,
            Command::Free(_) | Command::Unload(_) | Command::Signal(_) | Command::Stop => {}
        }
        Ok(())
    }

    fn call(&mut self, call: &SimLaunch) -> Result<(), DriverError> {
        if self.kernel_fault.strikes() {
            return Err(DriverError::Failed { call: "launch", why: "the kernel was ordered to fail".into() });
        }
        let SimLaunch { module, node, args } = call;
        let found = self.shared.modules().get(module).cloned();
        let gone = || DriverError::Failed { call: "launch", why: format!("there is no module {module}") };
        found.ok_or_else(gone)?.run(*node, args, &mut self.shared.memory())
    }
}
