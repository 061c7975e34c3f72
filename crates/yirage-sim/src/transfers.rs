//! The queue for copies from the host: a thread of its own, beside the one that runs steps.

use crate::queue::SimDeviceState;
use crate::settings::Settings;
use crate::timeline::Timeline;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use yirage_hal::HostMemory;
use yirage_hal::driver::{BufferSlice, DriverError, TransferQueue};
use yirage_ir::rng::Rng;

enum TransferCommand {
    Upload { from: Arc<dyn HostMemory>, to: BufferSlice },
    Signal(u64),
    Stop,
}

/// The host's side of the queue.
pub(crate) struct SimTransferQueue {
    side: Mutex<(Sender<TransferCommand>, u64)>,
    timeline: Arc<Timeline>,
    thread: Option<JoinHandle<()>>,
}

impl SimTransferQueue {
    /// Starts the queue.
    pub(crate) fn new(
        device: &Arc<SimDeviceState>,
        settings: &Settings,
        ordinal: u32,
    ) -> Result<SimTransferQueue, DriverError> {
        let (commands, received) = channel();
        let timeline = Arc::new(Timeline::default());
        let seed = settings.seed.wrapping_add(u64::from(ordinal)).wrapping_mul(31);
        let mut queue = TransferWorker {
            device: device.clone(),
            timeline: timeline.clone(),
            delays: Rng::new(seed),
            delay: settings.delay,
            error: None,
        };
        let run = move || queue.run(&received);
        let thread = std::thread::Builder::new().name(format!("sim {ordinal} transfers")).spawn(run);
        let thread = thread.map_err(|e| DriverError::Failed { call: "open", why: e.to_string() })?;
        Ok(SimTransferQueue { side: Mutex::new((commands, 0)), timeline, thread: Some(thread) })
    }

    fn submit(&self, command: impl FnOnce(&mut u64) -> TransferCommand) -> Result<(), DriverError> {
        self.timeline.check_lost()?;
        let mut side = self.side.lock().unwrap_or_else(PoisonError::into_inner);
        let command = command(&mut side.1);
        side.0.send(command).map_err(|_| DriverError::Lost("its queue for copies has ended".into()))
    }
}

impl TransferQueue for SimTransferQueue {
    fn upload(&self, from: Arc<dyn HostMemory>, to: BufferSlice) -> Result<(), DriverError> {
        self.submit(|_| TransferCommand::Upload { from, to })
    }

    fn signal(&self) -> Result<u64, DriverError> {
        let mut value = 0;
        self.submit(|signalled| {
            *signalled += 1;
            value = *signalled;
            TransferCommand::Signal(value)
        })?;
        Ok(value)
    }

    fn wait(&self, value: u64, deadline: Duration) -> Result<(), DriverError> {
        self.timeline.wait(value, deadline)
    }
}

impl Drop for SimTransferQueue {
    fn drop(&mut self) {
        let side = self.side.lock().unwrap_or_else(PoisonError::into_inner);
        // A queue that has ended needs not be told.
        let _ = side.0.send(TransferCommand::Stop);
        drop(side);
        if let Some(thread) = self.thread.take() {
            // A queue that panicked has told nobody; there is nobody left to tell.
            let _ = thread.join();
        }
    }
}

/// The queue's side.
struct TransferWorker {
    device: Arc<SimDeviceState>,
    timeline: Arc<Timeline>,
    delays: Rng,
    delay: Duration,
    /// The first error since the last signal.
    error: Option<DriverError>,
}

impl TransferWorker {
    fn run(&mut self, commands: &Receiver<TransferCommand>) {
        while let Ok(command) = commands.recv() {
            if self.device.timeline.check_lost().is_err() {
                self.timeline.lose("its queue of steps was");
            }
            match command {
                TransferCommand::Stop => return,
                TransferCommand::Upload { from, to } => {
                    if !self.delay.is_zero() {
                        std::thread::sleep(self.delay.mul_f64(f64::from(self.delays.unit_f32())));
                    }
                    if let Err(error) = self.device.store(from.bytes(), to) {
                        self.error.get_or_insert(error);
                    }
                }
                TransferCommand::Signal(value) => self.timeline.signal(value, self.error.take()),
            }
        }
    }
}
