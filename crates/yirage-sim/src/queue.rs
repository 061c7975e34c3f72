//! The queue of a device: a thread that runs commands one after the other.

use crate::collective::SimRank;
use crate::faults::Countdown;
use crate::kernel::SimModule;
use crate::launch::SimLaunch;
use crate::memory::SimMemory;
use crate::operation::SimOperation;
use crate::settings::Settings;
use crate::timeline::Timeline;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use yirage_hal::driver::{Binding, BufferId, BufferSlice, CollectiveCall, DriverError, MemoryCommand};
use yirage_hal::{HostMemory, Record};
use yirage_ir::rng::Rng;

/// What a queue is told.
pub(crate) enum Command {
    Upload { from: Arc<dyn HostMemory>, to: BufferSlice },
    Download { from: BufferSlice, into: Arc<Mutex<Record>> },
    Lend { from: BufferSlice, to: Sender<Vec<u8>> },
    Borrow { from: Receiver<Vec<u8>>, to: BufferSlice },
    Step(SimCommand),
    Replay(Arc<[SimCommand]>),
    Timestamp(Arc<Mutex<Duration>>),
    Free(BufferId),
    Unload(u64),
    Signal(u64),
    Stop,
}

/// What a queue does within a step.
#[derive(Clone, Debug)]
pub(crate) enum SimCommand {
    Launch(SimLaunch),
    Operation { operation: Arc<SimOperation>, bindings: Vec<Binding>, workspace: Option<BufferSlice> },
    Collective(CollectiveCall),
    Memory(MemoryCommand),
}

/// What a queue and its driver both have.
#[derive(Debug)]
pub(crate) struct SimDeviceState {
    memory: Mutex<SimMemory>,
    modules: Mutex<HashMap<u64, Arc<SimModule>>>,
    pub(crate) timeline: Timeline,
    busy_nanos: AtomicU64,
    captures: AtomicU64,
    staging: AtomicU64,
}

impl SimDeviceState {
    pub(crate) fn new(memory: u64) -> SimDeviceState {
        let (memory, timeline) = (Mutex::new(SimMemory::new(memory)), Timeline::default());
        SimDeviceState {
            memory,
            modules: Mutex::default(),
            timeline,
            busy_nanos: AtomicU64::new(0),
            captures: AtomicU64::new(0),
            staging: AtomicU64::new(0),
        }
    }

    /// Time in which the queue ran commands.
    pub(crate) fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_nanos.load(Ordering::Relaxed))
    }

    /// One more graph was captured.
    pub(crate) fn count_capture(&self) {
        self.captures.fetch_add(1, Ordering::Relaxed);
    }

    /// So many bytes of staging memory more were given.
    pub(crate) fn count_staging(&self, bytes: u64) {
        self.staging.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Bytes of staging memory given so far.
    pub(crate) fn staging(&self) -> u64 {
        self.staging.load(Ordering::Relaxed)
    }

    /// Graphs captured so far.
    pub(crate) fn captures(&self) -> u64 {
        self.captures.load(Ordering::Relaxed)
    }

    pub(crate) fn memory(&self) -> MutexGuard<'_, SimMemory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes bytes to a place for as many.
    pub(crate) fn store(&self, bytes: &[u8], to: BufferSlice) -> Result<(), DriverError> {
        let mut memory = self.memory();
        let place = memory.write(to)?;
        if place.len() != bytes.len() {
            let why = format!("{} bytes are given for the {} of {to:?}", bytes.len(), to.bytes);
            return Err(DriverError::Failed { call: "copy", why });
        }
        place.copy_from_slice(bytes);
        Ok(())
    }

    pub(crate) fn modules(&self) -> MutexGuard<'_, HashMap<u64, Arc<SimModule>>> {
        self.modules.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The queue's side.
pub(crate) struct SimQueue {
    shared: Arc<SimDeviceState>,
    delays: Rng,
    /// What orders of threads are drawn from.
    schedules: Rng,
    delay: Duration,
    step: Duration,
    rank: Option<SimRank>,
    /// What its clock counts from.
    began: Instant,
    kernel_fault: Countdown,
    lost_fault: Countdown,
    /// The first error since the last signal. What follows it does not run.
    error: Option<DriverError>,
}

impl SimQueue {
    pub(crate) fn new(
        shared: Arc<SimDeviceState>,
        settings: &Settings,
        ordinal: u32,
        rank: Option<SimRank>,
    ) -> SimQueue {
        SimQueue {
            shared,
            delays: Rng::new(settings.seed.wrapping_add(u64::from(ordinal))),
            schedules: Rng::new(!settings.seed.wrapping_add(u64::from(ordinal))),
            delay: settings.delay,
            step: settings.step,
            rank,
            began: Instant::now(),
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
                Command::Free(buffer) => {
                    let freed = self.shared.memory().free(buffer);
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
            self.leave("it is lost");
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
        match command {
            Command::Step(command) => self.step(&command),
            Command::Replay(commands) => commands.iter().for_each(|command| self.step(command)),
            command if self.error.is_none() => {
                let done = self.work(command);
                self.note(done);
            }
            _ => {}
        }
    }

    /// Runs a command of a step, unless one before has failed: then the other ranks are told where they wait.
    fn step(&mut self, command: &SimCommand) {
        match (self.error.clone(), command) {
            (None, command) => {
                let done = self.run_command(command);
                self.note(done);
            }
            (Some(error), SimCommand::Collective(call)) => {
                // The first error is the one that is told.
                let _ = self.rank.as_ref().map(|rank| rank.meet(call, Err(error.to_string())));
            }
            (Some(_), _) => {}
        }
    }

    fn leave(&self, why: &str) {
        if let Some(rank) = &self.rank {
            rank.leave(why);
        }
    }

    fn note(&mut self, done: Result<(), DriverError>) {
        if let Err(error) = done {
            self.error.get_or_insert(error);
        }
    }

    fn work(&mut self, command: Command) -> Result<(), DriverError> {
        match command {
            Command::Upload { from, to } => self.shared.store(from.bytes(), to)?,
            Command::Download { from, into } => {
                let record = Record::of(self.shared.memory().read(from)?);
                *into.lock().unwrap_or_else(PoisonError::into_inner) = record;
            }
            Command::Lend { from, to } => {
                let copy = self.shared.memory().read(from)?.to_vec();
                // Where nobody waits for it any more, the other device is gone.
                let _ = to.send(copy);
            }
            Command::Borrow { from, to } => {
                let gone = |_| DriverError::Failed { call: "copy", why: "the other device gave nothing".into() };
                self.shared.store(&from.recv().map_err(gone)?, to)?;
            }
            Command::Timestamp(into) => {
                *into.lock().unwrap_or_else(PoisonError::into_inner) = self.began.elapsed();
            }
            Command::Step(_)
            | Command::Replay(_)
            | Command::Free(_)
            | Command::Unload(_)
            | Command::Signal(_)
            | Command::Stop => {}
        }
        Ok(())
    }

    fn run_command(&mut self, command: &SimCommand) -> Result<(), DriverError> {
        match command {
            SimCommand::Launch(launch) => self.launch(launch),
            SimCommand::Operation { operation, bindings, workspace } => {
                self.check_kernel_fault()?;
                operation.run(bindings, *workspace, &mut self.shared.memory())
            }
            SimCommand::Collective(call) => self.collective(call),
            SimCommand::Memory(MemoryCommand::Copy { from, to }) => {
                let copy = self.shared.memory().read(*from)?.to_vec();
                self.shared.store(&copy, *to)
            }
            SimCommand::Memory(MemoryCommand::Fill { slice, byte }) => {
                self.shared.memory().write(*slice)?.fill(*byte);
                Ok(())
            }
        }
    }

    fn launch(&mut self, launch: &SimLaunch) -> Result<(), DriverError> {
        self.check_kernel_fault()?;
        let found = self.shared.modules().get(&launch.module).cloned();
        let gone = || DriverError::Failed { call: "launch", why: format!("there is no module {}", launch.module) };
        match &*found.ok_or_else(gone)? {
            SimModule::References(module) => {
                module.run(launch.kernel, &launch.bindings, &launch.arguments, &mut self.shared.memory())
            }
            SimModule::Shared(module) => module.run(launch, &mut self.schedules, &mut self.shared.memory()),
        }
    }

    fn collective(&mut self, call: &CollectiveCall) -> Result<(), DriverError> {
        let alone = || DriverError::Failed { call: "collective", why: "the device is of no group".into() };
        let rank = self.rank.clone().ok_or_else(alone)?;
        let bytes = u64::from(call.rows) * call.dtype.row_bytes(call.width as usize) as u64;
        let from = call.from.part(0, bytes).and_then(|from| self.shared.memory().read(from).map(<[u8]>::to_vec).ok());
        let given = from.as_deref().ok_or_else(|| format!("{bytes} bytes are not at {:?}", call.from));
        let got = rank.meet(call, given)?;
        let outside =
            || DriverError::Failed { call: "collective", why: format!("{} bytes for {:?}", got.len(), call.to) };
        self.shared.store(&got, call.to.part(0, got.len() as u64).ok_or_else(outside)?)
    }

    fn check_kernel_fault(&mut self) -> Result<(), DriverError> {
        if self.kernel_fault.strikes() {
            return Err(DriverError::Failed { call: "launch", why: "the kernel was ordered to fail".into() });
        }
        Ok(())
    }
}
