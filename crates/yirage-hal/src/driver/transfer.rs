//! Weights on their way: pieces of memory that the device reads by itself, a few of them, filled while others are copied.
//!
//! Reading a file, packing and copying overlap, and the host holds no more of a model than the pieces.

use super::contract::{Driver, TransferQueue};
use super::error::DriverError;
use super::memory::BufferSlice;
use crate::error::HalError;
use crate::record::{HostMemory, StagingMemory};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a piece: large enough that a copy runs at the speed of its way.
const PIECE: usize = 4 << 20;
/// Pieces that are filled and copied in turn.
const PIECES: usize = 4;
/// How long a copy may take before its device counts as hanging.
const HANG_AFTER: Duration = Duration::from_secs(120);

/// The beginning of a piece.
struct Filled {
    piece: Arc<dyn StagingMemory>,
    bytes: usize,
}

impl HostMemory for Filled {
    fn bytes(&self) -> &[u8] {
        &self.piece.bytes()[..self.bytes]
    }
}

/// The pieces of a device, and what is on its way in them.
#[derive(Default)]
pub(super) struct Transfers(Mutex<TransferState>);

#[derive(Default)]
struct TransferState {
    free: Vec<Arc<dyn StagingMemory>>,
    /// Pieces on their way, with the value that is signalled behind each.
    in_flight: VecDeque<(u64, Arc<dyn StagingMemory>)>,
    /// What went wrong first in a copy that nobody has waited for.
    failed: Option<DriverError>,
}

impl Transfers {
    fn state(&self) -> MutexGuard<'_, TransferState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submits copies of bytes to as many of the device. They may be written over when this returns.
    pub(super) fn upload<D: Driver>(&self, driver: &D, bytes: &[u8], to: BufferSlice) -> Result<(), HalError> {
        let mut state = self.state();
        for (at, part) in bytes.chunks(PIECE).enumerate() {
            let outside = || HalError::Device(format!("{} bytes do not fit {to:?}", bytes.len()));
            let to = to.part((at * PIECE) as u64, part.len() as u64).ok_or_else(outside)?;
            let mut piece = state.piece(driver)?;
            let kept = || HalError::Device("the driver keeps a piece of staging memory that it has copied".into());
            Arc::get_mut(&mut piece).ok_or_else(kept)?.bytes_mut()[..part.len()].copy_from_slice(part);
            let queue = queue(driver);
            queue.upload(Arc::new(Filled { piece: piece.clone(), bytes: part.len() }), to)?;
            state.in_flight.push_back((queue.signal()?, piece));
        }
        Ok(())
    }

    /// Waits for all copies, and gives the pieces back.
    ///
    /// # Errors
    /// What went wrong first in any copy since the last call.
    pub(super) fn finish<D: Driver>(&self, driver: &D) -> Result<(), HalError> {
        let mut state = self.state();
        state.settle(driver);
        state.free.clear();
        state.failed.take().map_or(Ok(()), |error| Err(error.into()))
    }

    /// Waits for all copies: memory that they write may be given back then.
    pub(super) fn settle<D: Driver>(&self, driver: &D) {
        self.state().settle(driver);
    }
}

impl TransferState {
    /// A piece that nothing is copied from.
    fn piece<D: Driver>(&mut self, driver: &D) -> Result<Arc<dyn StagingMemory>, HalError> {
        if let Some(piece) = self.free.pop() {
            return Ok(piece);
        }
        if self.in_flight.len() < PIECES {
            return Ok(driver.staging(PIECE)?);
        }
        self.wait_for_oldest(driver);
        self.free.pop().ok_or_else(|| HalError::Device("a copy to the device has no end".into()))
    }

    fn wait_for_oldest<D: Driver>(&mut self, driver: &D) {
        let Some((value, piece)) = self.in_flight.pop_front() else { return };
        let waited = queue(driver).wait(value);
        self.free.push(piece);
        if let Err(error) = waited {
            // Whoever wants the weights is told.
            self.failed.get_or_insert(error);
        }
    }

    fn settle<D: Driver>(&mut self, driver: &D) {
        while !self.in_flight.is_empty() {
            self.wait_for_oldest(driver);
        }
    }
}

/// The queue that weights go by: one of its own where the device has it.
enum Queue<'a, D> {
    Main(&'a D),
    Own(&'a dyn TransferQueue),
}

fn queue<D: Driver>(driver: &D) -> Queue<'_, D> {
    driver.transfer_queue().map_or(Queue::Main(driver), Queue::Own)
}

impl<D: Driver> Queue<'_, D> {
    fn upload(&self, from: Arc<dyn HostMemory>, to: BufferSlice) -> Result<(), DriverError> {
        match self {
            Queue::Main(driver) => driver.upload(from, to),
            Queue::Own(queue) => queue.upload(from, to),
        }
    }

    fn signal(&self) -> Result<u64, DriverError> {
        match self {
            Queue::Main(driver) => driver.signal(),
            Queue::Own(queue) => queue.signal(),
        }
    }

    fn wait(&self, value: u64) -> Result<(), DriverError> {
        match self {
            Queue::Main(driver) => driver.wait(value, HANG_AFTER),
            Queue::Own(queue) => queue.wait(value, HANG_AFTER),
        }
    }
}
