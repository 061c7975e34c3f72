//! Bytes on their way to the host: buffers that it reads, kept for the next ones.

use crate::errors::{failed, refused, scoped};
use crate::limits::{BUFFER_UNIT, MOST_KEPT_STAGING};
use crate::timeline::SubmissionTimeline;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use yirage_hal::Record;
use yirage_hal::driver::{Download, DriverError};

/// Buffers that the host can read, and nobody uses.
#[derive(Default)]
pub(crate) struct StagingPool(Mutex<Vec<wgpu::Buffer>>);

/// A buffer that the host reads when the device has written it.
pub(crate) struct StagingBuffer {
    buffer: wgpu::Buffer,
    pool: Arc<StagingPool>,
    state: Arc<AtomicU8>,
}

/// The device alone has it.
const IDLE: u8 = 0;
/// The host was promised that it may read.
const PROMISED: u8 = 1;
/// The host may read.
const MAPPED: u8 = 2;
/// Nobody will read what was promised.
const ABANDONED: u8 = 3;

impl StagingPool {
    /// A buffer for at least so many bytes.
    pub(crate) fn take(
        self: &Arc<StagingPool>,
        device: &wgpu::Device,
        bytes: u64,
    ) -> Result<StagingBuffer, DriverError> {
        let too_long = || refused("download", format!("{bytes} bytes are more than a buffer has"));
        let size = bytes.max(BUFFER_UNIT).checked_next_power_of_two().ok_or_else(too_long)?;
        let mut free = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = free.iter().position(|buffer| buffer.size() == size).map(|at| free.swap_remove(at));
        drop(free);
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let made =
            || device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        let buffer = kept.map_or_else(|| scoped(device, made), Ok).map_err(|error| failed("download", &error))?;
        Ok(StagingBuffer { buffer, pool: self.clone(), state: Arc::default() })
    }
}

impl StagingBuffer {
    pub(crate) fn buffer(&self) -> &wgpu::Buffer {
        &self.buffer
    }

    /// Has it read by the host once everything submitted has run, which stands behind the signal of `value`.
    pub(crate) fn map(&self, timeline: &Arc<SubmissionTimeline>, value: u64) {
        let (timeline, state) = (timeline.clone(), self.state.clone());
        state.store(PROMISED, Ordering::Release);
        self.buffer.map_async(wgpu::MapMode::Read, .., move |mapped| {
            let changed = state.compare_exchange(PROMISED, MAPPED, Ordering::AcqRel, Ordering::Acquire);
            // What became of a buffer that nobody reads any more is no error.
            if let (Ok(_), Err(error)) = (changed, mapped) {
                timeline.note_at(value, refused("download", error.to_string()));
            }
        });
    }

    /// Bytes that the device has written; zeros where it has not, which whoever waited was told.
    pub(crate) fn read(&self, offset: u64, into: &mut [u8]) {
        let from = offset / wgpu::MAP_ALIGNMENT * wgpu::MAP_ALIGNMENT;
        let skipped = (offset - from) as usize;
        let end = (offset + into.len() as u64).next_multiple_of(wgpu::COPY_BUFFER_ALIGNMENT);
        if let Ok(view) = self.buffer.get_mapped_range(from..end) {
            into.copy_from_slice(&view[skipped..skipped + into.len()]);
        }
    }
}

impl Drop for StagingBuffer {
    fn drop(&mut self) {
        match self.state.swap(ABANDONED, Ordering::AcqRel) {
            IDLE => {}
            MAPPED => self.buffer.unmap(),
            _ => return,
        }
        let mut free = self.pool.0.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < MOST_KEPT_STAGING {
            free.push(self.buffer.clone());
        }
    }
}

/// A download.
pub(crate) struct StagedDownload {
    /// None of no bytes.
    pub(crate) staging: Option<Arc<StagingBuffer>>,
    /// Bytes before those that were asked for.
    pub(crate) skipped: u64,
    pub(crate) bytes: usize,
}

impl Download for StagedDownload {
    fn take(self: Box<Self>) -> Record {
        let mut record = Record::zeroed(self.bytes);
        if let Some(staging) = &self.staging {
            staging.read(self.skipped, record.bytes_mut());
        }
        record
    }
}
