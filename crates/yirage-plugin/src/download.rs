//! Bytes on their way back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use yirage_hal::Record;
use yirage_hal::driver::{Download, Timestamp};

/// Memory that a library writes. The queue holds a handle of it until it has written.
pub(crate) struct DownloadMemory {
    words: *mut [u64],
    is_written: AtomicBool,
}

// SAFETY: the words are the library's until `is_written`, and nobody's to write from then on.
unsafe impl Send for DownloadMemory {}
// SAFETY: as for `Send`; `PluginDownload::take` reads them behind `is_written` alone.
unsafe impl Sync for DownloadMemory {}

impl DownloadMemory {
    pub(crate) fn new(bytes: usize) -> Arc<DownloadMemory> {
        let words = Box::into_raw(vec![0u64; bytes.div_ceil(8)].into_boxed_slice());
        Arc::new(DownloadMemory { words, is_written: AtomicBool::new(false) })
    }

    /// Where the library writes.
    pub(crate) fn address(&self) -> *mut u64 {
        self.words.cast()
    }
}

impl Drop for DownloadMemory {
    fn drop(&mut self) {
        // SAFETY: it came of `into_raw` in `new`; whoever may write it holds a handle, and this was the last one.
        drop(unsafe { Box::from_raw(self.words) });
    }
}

/// The queue's handle, which marks the memory as written when it lets go.
pub(crate) struct WriterOfDownload(pub(crate) Arc<DownloadMemory>);

impl Drop for WriterOfDownload {
    fn drop(&mut self) {
        self.0.is_written.store(true, Ordering::Release);
    }
}

/// A download.
pub(crate) struct PluginDownload {
    pub(crate) memory: Arc<DownloadMemory>,
    pub(crate) bytes: usize,
}

impl Download for PluginDownload {
    /// The bytes; zeros where the queue has not come so far, which whoever waited was told.
    fn take(self: Box<Self>) -> Record {
        let mut record = Record::zeroed(self.bytes);
        if self.memory.is_written.load(Ordering::Acquire) {
            // SAFETY: they are as many as `new` made of these bytes, and written.
            let bytes = unsafe { std::slice::from_raw_parts(self.memory.address().cast::<u8>(), self.bytes) };
            record.bytes_mut().copy_from_slice(bytes);
        }
        record
    }
}

/// A moment of the device's clock.
pub(crate) struct PluginTimestamp(pub(crate) Arc<DownloadMemory>);

impl Timestamp for PluginTimestamp {
    /// The time; none at all where the queue has not come so far, which whoever waited was told.
    fn take(self: Box<Self>) -> Duration {
        let is_written = self.0.is_written.load(Ordering::Acquire);
        // SAFETY: `PluginDriver::timestamp` made it of eight bytes, and it is written.
        Duration::from_nanos(if is_written { unsafe { self.0.address().read() } } else { 0 })
    }
}
