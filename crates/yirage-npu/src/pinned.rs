//! Page-locked memory of the host: the runtime copies to and from no other memory behind the host's back.

use crate::limits::{LEAST_PINNED, MOST_KEPT_PINNED};
use crate::runtime::{AcceleratorRuntime, LockedMemory};
use crate::status::refused;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use yirage_hal::Record;
use yirage_hal::driver::{Download, DriverError};

/// Pieces that nobody uses.
#[derive(Default)]
pub(crate) struct PinnedPool(Mutex<Vec<LockedMemory>>);

/// A piece that a stream reads or writes. The stream holds a handle of it until it has, and marks it so when it lets go.
pub(crate) struct PinnedPiece {
    /// There until it goes back to the pool.
    memory: Option<LockedMemory>,
    pool: Arc<PinnedPool>,
    is_done: AtomicBool,
}

/// A stream's handle of a piece.
pub(crate) struct PieceInUse(Arc<PinnedPiece>);

impl PinnedPool {
    /// A piece for so many bytes at least, that begins with these.
    pub(crate) fn take(
        self: &Arc<PinnedPool>,
        runtime: &Arc<dyn AcceleratorRuntime>,
        bytes: usize,
        first: &[u8],
    ) -> Result<Arc<PinnedPiece>, DriverError> {
        let too_long = || refused("staging", format!("{bytes} bytes are more than memory has"));
        let size = bytes.max(first.len()).max(LEAST_PINNED).checked_next_power_of_two().ok_or_else(too_long)?;
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free.iter().position(|memory| memory.len() == size).map(|at| free.swap_remove(at));
        drop(free);
        let mut memory = kept.map_or_else(|| LockedMemory::new(runtime, size), Ok)?;
        memory.bytes_mut()[..first.len()].copy_from_slice(first);
        Ok(Arc::new(PinnedPiece { memory: Some(memory), pool: self.clone(), is_done: AtomicBool::new(false) }))
    }
}

impl PinnedPiece {
    /// The memory, for a stream.
    pub(crate) fn memory(&self) -> Result<&LockedMemory, DriverError> {
        self.memory.as_ref().ok_or_else(|| refused("staging", "the piece has gone back to its pool"))
    }

    /// The handle that a stream has.
    pub(crate) fn in_use(self: &Arc<PinnedPiece>) -> PieceInUse {
        PieceInUse(self.clone())
    }
}

impl Drop for PieceInUse {
    fn drop(&mut self) {
        self.0.is_done.store(true, Ordering::Release);
    }
}

impl Drop for PinnedPiece {
    fn drop(&mut self) {
        let mut free = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < MOST_KEPT_PINNED {
            free.extend(self.memory.take());
        }
    }
}

/// Bytes of the device on their way to the host.
pub(crate) struct NpuDownload {
    pub(crate) piece: Arc<PinnedPiece>,
    pub(crate) bytes: usize,
}

impl Download for NpuDownload {
    /// The bytes; zeros where the stream has not written them, which whoever waited was told.
    fn take(self: Box<Self>) -> Record {
        let mut record = Record::zeroed(self.bytes);
        let memory = self.piece.memory.as_ref().filter(|_| self.piece.is_done.load(Ordering::Acquire));
        if let Some(memory) = memory {
            record.bytes_mut().copy_from_slice(&memory.bytes()[..self.bytes]);
        }
        record
    }
}
