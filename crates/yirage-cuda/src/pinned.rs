//! Page-locked memory of the host: for weights on their way to the device, and for results on their way back.

use crate::limits::{LEAST_PINNED, MOST_KEPT_PINNED};
use crate::runtime::{CudaContext, PinnedMemory};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use yirage_hal::driver::{Download, DriverError};
use yirage_hal::{HostMemory, Record, StagingMemory};

/// A piece for uploads.
pub(crate) struct StagingPiece(pub(crate) PinnedMemory);

impl HostMemory for StagingPiece {
    fn bytes(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl StagingMemory for StagingPiece {
    fn bytes_mut(&mut self) -> &mut [u8] {
        self.0.bytes_mut()
    }
}

/// Pieces for downloads that nobody uses.
#[derive(Default)]
pub(crate) struct DownloadPool(Mutex<Vec<PinnedMemory>>);

/// A piece that a stream writes. The stream holds a handle of it until it has written, and marks it so when it lets go.
pub(crate) struct DownloadPiece {
    /// There until it goes back to the pool.
    memory: Option<PinnedMemory>,
    pool: Arc<DownloadPool>,
    is_written: AtomicBool,
}

/// A stream's handle of a piece.
pub(crate) struct WriterOfPiece(Arc<DownloadPiece>);

impl DownloadPool {
    /// A piece for at least so many bytes.
    pub(crate) fn take(
        self: &Arc<DownloadPool>,
        context: &Arc<CudaContext>,
        bytes: usize,
    ) -> Result<Arc<DownloadPiece>, DriverError> {
        let too_long = || crate::status::refused("download", format!("{bytes} bytes are more than memory has"));
        let size = bytes.max(LEAST_PINNED).checked_next_power_of_two().ok_or_else(too_long)?;
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free.iter().position(|memory| memory.len() == size).map(|at| free.swap_remove(at));
        drop(free);
        let memory = kept.map_or_else(|| PinnedMemory::new(context, size), Ok)?;
        Ok(Arc::new(DownloadPiece { memory: Some(memory), pool: self.clone(), is_written: AtomicBool::new(false) }))
    }
}

impl DownloadPiece {
    /// The memory, for a stream to write.
    pub(crate) fn memory(&self) -> Option<&PinnedMemory> {
        self.memory.as_ref()
    }

    pub(crate) fn writer(self: &Arc<DownloadPiece>) -> WriterOfPiece {
        WriterOfPiece(self.clone())
    }
}

impl Drop for WriterOfPiece {
    fn drop(&mut self) {
        self.0.is_written.store(true, Ordering::Release);
    }
}

impl Drop for DownloadPiece {
    fn drop(&mut self) {
        let mut free = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < MOST_KEPT_PINNED {
            free.extend(self.memory.take());
        }
    }
}

/// A download.
pub(crate) struct PinnedDownload {
    pub(crate) piece: Arc<DownloadPiece>,
    pub(crate) bytes: usize,
}

impl Download for PinnedDownload {
    /// The bytes; zeros where the stream has not written them, which whoever waited was told.
    fn take(self: Box<Self>) -> Record {
        let mut record = Record::zeroed(self.bytes);
        let memory = self.piece.memory().filter(|_| self.piece.is_written.load(Ordering::Acquire));
        if let Some(memory) = memory {
            record.bytes_mut().copy_from_slice(&memory.bytes()[..self.bytes]);
        }
        record
    }
}
