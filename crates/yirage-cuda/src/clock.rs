//! The device's clock: events whose distances the driver tells.
//!
//! It tells them as floats of milliseconds, which are exact to a microsecond for some seconds only. So times are counted from an
//! event of the last seconds, whose own time is counted from the one before it.

use crate::limits::REBASE;
use crate::runtime::{CudaContext, CudaEvent, CudaStream};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use yirage_hal::driver::{DriverError, Timestamp};

/// The clock of a device.
pub(crate) struct EventClock {
    context: Arc<CudaContext>,
    base: Mutex<Option<Arc<ClockBase>>>,
}

/// A moment that others are counted from.
struct ClockBase {
    event: CudaEvent,
    recorded: Instant,
    /// The moment that it is counted from itself; none of the first, and of one whose time is known.
    before: Mutex<Option<Arc<ClockBase>>>,
    at: OnceLock<Duration>,
}

impl EventClock {
    pub(crate) fn new(context: &Arc<CudaContext>) -> EventClock {
        EventClock { context: context.clone(), base: Mutex::default() }
    }

    /// Submits a timestamp.
    pub(crate) fn timestamp(&self, stream: &CudaStream) -> Result<EventTimestamp, DriverError> {
        let mut base = self.base.lock().unwrap_or_else(PoisonError::into_inner);
        let base = match base.take() {
            Some(recent) if recent.recorded.elapsed() < REBASE => base.insert(recent),
            before => base.insert(Arc::new(self.base(stream, before)?)),
        };
        let event = CudaEvent::new(&self.context, true)?;
        stream.record(&event)?;
        Ok(EventTimestamp { event, base: base.clone() })
    }

    fn base(&self, stream: &CudaStream, before: Option<Arc<ClockBase>>) -> Result<ClockBase, DriverError> {
        let event = CudaEvent::new(&self.context, true)?;
        stream.record(&event)?;
        Ok(ClockBase { event, recorded: Instant::now(), before: Mutex::new(before), at: OnceLock::new() })
    }
}

impl ClockBase {
    /// Its time from the first moment of all.
    fn at(&self) -> Duration {
        let mut before = self.before.lock().unwrap_or_else(PoisonError::into_inner);
        let at = self.at.get_or_init(|| before.as_ref().map_or(Duration::ZERO, |before| between(before, &self.event)));
        *before = None;
        *at
    }
}

/// The time of an event behind a base.
fn between(base: &Arc<ClockBase>, event: &CudaEvent) -> Duration {
    // A device that is lost tells no time, and whoever waited was told of the loss.
    let elapsed = event
        .since(&base.event)
        .map_or(Duration::ZERO, |ms| Duration::try_from_secs_f64(f64::from(ms) / 1e3).unwrap_or_default());
    base.at() + elapsed
}

/// A timestamp that was submitted.
pub(crate) struct EventTimestamp {
    event: CudaEvent,
    base: Arc<ClockBase>,
}

impl Timestamp for EventTimestamp {
    fn take(self: Box<Self>) -> Duration {
        between(&self.base, &self.event)
    }
}
