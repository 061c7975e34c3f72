//! The device's clock: timestamps of a submission together, read by the host when it has run.

use crate::errors::{failed, scoped};
use crate::limits::MOST_TIMESTAMPS;
use crate::transfers::{StagingBuffer, StagingPool};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use yirage_hal::driver::{DriverError, Timestamp};

/// The clock.
pub(crate) struct Clock {
    pub(crate) set: wgpu::QuerySet,
    /// Where the device writes a batch's numbers before they are copied for the host.
    resolved: wgpu::Buffer,
    /// Nanoseconds of a tick.
    tick: f64,
}

/// Timestamps of one submission.
pub(crate) struct TimestampBatch {
    count: AtomicU32,
    set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    staging: Arc<StagingBuffer>,
}

/// One of them.
pub(crate) struct PendingTimestamp {
    pub(crate) batch: Arc<TimestampBatch>,
    pub(crate) place: u32,
    pub(crate) tick: f64,
}

/// Bytes of a timestamp.
const BYTES: u64 = wgpu::QUERY_SIZE as u64;

impl Clock {
    /// The clock of a device; none where it has none that is read between commands.
    pub(crate) fn new(device: &wgpu::Device, queue: &wgpu::Queue) -> Result<Option<Clock>, DriverError> {
        let wanted = Clock::FEATURES;
        let tick = f64::from(queue.get_timestamp_period());
        if !device.features().contains(wanted) || tick <= 0.0 {
            return Ok(None);
        }
        let made = scoped(device, || {
            let set = device.create_query_set(&wgpu::QuerySetDescriptor {
                label: None,
                ty: wgpu::QueryType::Timestamp,
                count: MOST_TIMESTAMPS,
            });
            let resolved = device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: BYTES * u64::from(MOST_TIMESTAMPS),
                usage: wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: false,
            });
            Clock { set, resolved, tick }
        });
        made.map(Some).map_err(|error| failed("open", &error))
    }

    /// What a device has to have for it.
    pub(crate) const FEATURES: wgpu::Features =
        wgpu::Features::TIMESTAMP_QUERY.union(wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS);

    /// An empty batch.
    pub(crate) fn batch(&self, device: &wgpu::Device, pool: &Arc<StagingPool>) -> Result<TimestampBatch, DriverError> {
        let staging = Arc::new(pool.take(device, BYTES * u64::from(MOST_TIMESTAMPS))?);
        Ok(TimestampBatch { count: AtomicU32::new(0), set: self.set.clone(), resolved: self.resolved.clone(), staging })
    }

    pub(crate) fn tick(&self) -> f64 {
        self.tick
    }
}

impl TimestampBatch {
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::Relaxed)
    }

    /// One more: its place.
    pub(crate) fn add(&self) -> u32 {
        self.count.fetch_add(1, Ordering::Relaxed)
    }

    /// Has them written where the host reads.
    pub(crate) fn resolve(&self, encoder: &mut wgpu::CommandEncoder) {
        let count = self.count();
        encoder.resolve_query_set(&self.set, 0..count, &self.resolved, 0);
        encoder.copy_buffer_to_buffer(&self.resolved, 0, self.staging.buffer(), 0, BYTES * u64::from(count));
    }

    pub(crate) fn staging(&self) -> Arc<StagingBuffer> {
        self.staging.clone()
    }
}

impl Timestamp for PendingTimestamp {
    fn take(self: Box<Self>) -> Duration {
        let mut bytes = [0; BYTES as usize];
        self.batch.staging.read(BYTES * u64::from(self.place), &mut bytes);
        Duration::from_nanos((u64::from_le_bytes(bytes) as f64 * self.tick) as u64)
    }
}
