//! The driver: what a vendor's runtime would give.

use crate::faults::Countdown;
use crate::kernel::Module;
use crate::memory::SimMemoryStats;
use crate::queue::{Command, SimDeviceState, SimLaunch, SimQueue};
use crate::settings::Settings;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use yirage_hal::driver::{Address, CapturedGraphId, Download, Driver, DriverError, GraphCapture, Launch, ModuleId};
use yirage_hal::{HostMemory, Record};

/// The driver of one device.
pub(crate) struct SimDriver {
    shared: Arc<SimDeviceState>,
    side: Mutex<SimHostQueue>,
    /// Modules and recordings so far.
    next_id: AtomicU64,
    captured_graphs: Mutex<HashMap<u64, Arc<[SimLaunch]>>>,
    captures_graphs: bool,
    in_flight: usize,
    queue: Option<JoinHandle<()>>,
}

/// The host's side of the queue.
struct SimHostQueue {
    commands: Sender<Command>,
    signalled: u64,
    alloc_fault: Countdown,
    submit_fault: Countdown,
}

impl SimDriver {
    /// Starts the device's queue.
    pub(crate) fn new(settings: &Settings, ordinal: u32) -> Result<SimDriver, DriverError> {
        let shared = Arc::new(SimDeviceState::new(settings.memory));
        let (commands, received) = channel();
        let queue = SimQueue::new(shared.clone(), settings, ordinal);
        let thread = std::thread::Builder::new().name(format!("sim {ordinal}")).spawn(move || queue.run(&received));
        let queue = thread.map_err(|e| DriverError::Failed { call: "open", why: e.to_string() })?;
        let (alloc_fault, submit_fault) =
            (Countdown::new(settings.faults.alloc), Countdown::new(settings.faults.submit));
        let side = Mutex::new(SimHostQueue { commands, signalled: 0, alloc_fault, submit_fault });
        Ok(SimDriver {
            shared,
            side,
            next_id: AtomicU64::new(0),
            captured_graphs: Mutex::default(),
            captures_graphs: settings.captures_graphs,
            in_flight: settings.in_flight,
            queue: Some(queue),
        })
    }

    /// A look at the device's memory that outlives the driver.
    pub(crate) fn monitor(&self) -> SimMonitor {
        SimMonitor(self.shared.clone())
    }

    fn submit(&self, command: Command) -> Result<(), DriverError> {
        self.submit_with(|_| command)
    }

    fn submit_with(&self, command: impl FnOnce(&mut SimHostQueue) -> Command) -> Result<(), DriverError> {
        self.shared.timeline.check_lost()?;
        let mut side = self.side.lock().unwrap_or_else(PoisonError::into_inner);
        if side.submit_fault.strikes() {
            return Err(DriverError::Failed { call: "submit", why: "it was ordered to fail".into() });
        }
        let command = command(&mut side);
        side.commands.send(command).map_err(|_| DriverError::Lost("its queue has ended".into()))
    }

    /// What is submitted although nobody could be told that it fails.
    fn give_back(&self, command: Command) {
        let side = self.side.lock().unwrap_or_else(PoisonError::into_inner);
        // The queue ends with the driver alone, and what is held with both.
        let _ = side.commands.send(command);
    }
}

impl SimDriver {
    /// A launch with its kernel looked up.
    fn call(&self, launch: Launch) -> Result<SimLaunch, DriverError> {
        let module = self.shared.modules().get(&launch.module.0).cloned();
        let gone = || DriverError::Failed { call: "launch", why: format!("there is no module {}", launch.module.0) };
        let node = module.ok_or_else(gone)?.node(&launch.entry)?;
        Ok(SimLaunch { module: launch.module.0, node, args: launch.args })
    }

    fn captured_graphs(&self) -> MutexGuard<'_, HashMap<u64, Arc<[SimLaunch]>>> {
        self.captured_graphs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GraphCapture for SimDriver {
    fn capture(&self, launches: Vec<Launch>) -> Result<CapturedGraphId, DriverError> {
        self.shared.timeline.check_lost()?;
        let calls = launches.into_iter().map(|launch| self.call(launch)).collect::<Result<_, _>>()?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.captured_graphs().insert(id, calls);
        Ok(CapturedGraphId(id))
    }

    fn replay(&self, recording: CapturedGraphId) -> Result<(), DriverError> {
        let calls = self.captured_graphs().get(&recording.0).cloned();
        let gone = || DriverError::Failed { call: "play", why: format!("there is no recording {}", recording.0) };
        self.submit(Command::Replay(calls.ok_or_else(gone)?))
    }

    fn release(&self, recording: CapturedGraphId) {
        // What was submitted has the calls itself.
        self.captured_graphs().remove(&recording.0);
    }
}

impl Driver for SimDriver {
    fn alloc(&self, bytes: u64) -> Result<Address, DriverError> {
        self.shared.timeline.check_lost()?;
        let strikes = self.side.lock().unwrap_or_else(PoisonError::into_inner).alloc_fault.strikes();
        let mut memory = self.shared.memory();
        if strikes {
            let (free, total) = memory.capacity();
            return Err(DriverError::OutOfMemory { wanted: bytes, free, total });
        }
        memory.alloc(bytes)
    }

    fn free(&self, at: Address) {
        self.give_back(Command::Free(at));
    }

    fn fill(&self, at: Address, byte: u8, bytes: u64) -> Result<(), DriverError> {
        self.submit(Command::Fill { at, byte, bytes })
    }

    fn upload(&self, from: Arc<dyn HostMemory>, to: Address) -> Result<(), DriverError> {
        self.submit(Command::Upload { from, to })
    }

    fn download(&self, from: Address, bytes: u64) -> Result<Box<dyn Download>, DriverError> {
        let into = Arc::default();
        self.submit(Command::Download { from, bytes, into: Arc::clone(&into) })?;
        Ok(Box::new(Landing(into)))
    }

    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DriverError> {
        self.submit(Command::Copy { from, to, bytes })
    }

    fn module(&self, code: &[u8]) -> Result<ModuleId, DriverError> {
        self.shared.timeline.check_lost()?;
        let module = Module::new(code)?;
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        self.shared.modules().insert(id, Arc::new(module));
        Ok(ModuleId(id))
    }

    fn unload(&self, module: ModuleId) {
        self.give_back(Command::Unload(module.0));
    }

    fn launch(&self, launch: Launch) -> Result<(), DriverError> {
        let call = self.call(launch)?;
        self.submit(Command::Launch(call))
    }

    fn copy_from(&self, peer: &SimDriver, from: Address, to: Address, bytes: u64) -> Result<(), DriverError> {
        let (lent, borrowed) = channel();
        peer.submit(Command::Lend { from, bytes, to: lent })?;
        self.submit(Command::Borrow { from: borrowed, to })
    }

    fn graph_capture(&self) -> Option<&dyn GraphCapture> {
        self.captures_graphs.then_some(self)
    }

    fn signal(&self) -> Result<u64, DriverError> {
        let mut value = 0;
        self.submit_with(|side| {
            side.signalled += 1;
            value = side.signalled;
            Command::Signal(value)
        })?;
        Ok(value)
    }

    fn reached(&self) -> Result<u64, DriverError> {
        self.shared.timeline.reached()
    }

    fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError> {
        self.shared.timeline.wait(value, deadline)
    }

    fn in_flight(&self) -> usize {
        self.in_flight
    }
}

impl Drop for SimDriver {
    fn drop(&mut self) {
        self.give_back(Command::Stop);
        if let Some(queue) = self.queue.take() {
            // A queue that panicked has told nobody; there is nobody left to tell.
            let _ = queue.join();
        }
    }
}

/// Bytes that the queue will have written here.
struct Landing(Arc<Mutex<Record>>);

impl Download for Landing {
    fn take(self: Box<Self>) -> Record {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A look at a device's memory.
#[derive(Clone, Debug)]
pub(crate) struct SimMonitor(Arc<SimDeviceState>);

impl SimMonitor {
    pub(crate) fn memory_stats(&self) -> SimMemoryStats {
        self.0.memory().stats()
    }

    pub(crate) fn busy(&self) -> Duration {
        self.0.busy()
    }
}
