//! Whether a server is fast enough: a least speed over a window, and a deadline over all.

use crate::HubError;
use std::time::{Duration, Instant};

/// How slow a server may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DownloadLimits {
    /// How long an answer may take in all; a file gets the time of its bytes at the least speed besides.
    pub deadline: Duration,
    /// Bytes a second that a download has to bring.
    pub least_speed: u64,
    /// Over how long the speed is measured.
    pub window: Duration,
}

/// The time that a transfer has taken, and what it brought.
#[derive(Debug)]
pub(crate) struct TransferMonitor {
    patience: DownloadLimits,
    started: Instant,
    received: u64,
    window_began: Instant,
    window_received: u64,
}

impl TransferMonitor {
    pub(crate) fn new(patience: DownloadLimits) -> Self {
        let now = Instant::now();
        Self { patience, started: now, received: 0, window_began: now, window_received: 0 }
    }

    /// A new connection: what connecting took is no matter of speed, but it is one of the deadline.
    pub(crate) fn connected(&mut self) {
        self.window_began = Instant::now();
        self.window_received = 0;
    }

    /// Fails when `url` has used up its time, whatever it brought.
    ///
    /// # Errors
    /// [`HubError::TooLate`].
    pub(crate) fn check(&self, url: &str) -> Result<(), HubError> {
        let earned = Duration::from_secs(self.received / self.patience.least_speed.max(1));
        let allowed = self.patience.deadline.saturating_add(earned);
        match self.started.elapsed() {
            taken if taken > allowed => {
                Err(HubError::TooLate { url: url.to_owned(), received_bytes: self.received, allowed })
            }
            _ => Ok(()),
        }
    }

    /// Counts what came from `url`.
    ///
    /// # Errors
    /// [`HubError::TooLate`], and [`HubError::TooSlow`] when a window is over that brought too little.
    pub(crate) fn took(&mut self, url: &str, bytes: u64) -> Result<(), HubError> {
        self.received += bytes;
        self.window_received += bytes;
        let (window, taken) = (self.patience.window, self.window_began.elapsed());
        if taken >= window {
            let speed = (self.window_received as f64 / taken.as_secs_f64()) as u64;
            if speed < self.patience.least_speed {
                let (url, least) = (url.to_owned(), self.patience.least_speed);
                return Err(HubError::TooSlow { url, received_bytes: self.received, speed, least, window });
            }
            self.connected();
        }
        self.check(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Duration = Duration::ZERO;
    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_window_without_enough_bytes_ends_it() {
        let mut pace = TransferMonitor::new(DownloadLimits { deadline: HOUR, least_speed: u64::MAX, window: NONE });
        let error = pace.took("http://x", 7).unwrap_err();
        assert!(matches!(error, HubError::TooSlow { received_bytes: 7, least: u64::MAX, .. }), "{error}");
        let mut patient = TransferMonitor::new(DownloadLimits { deadline: HOUR, least_speed: u64::MAX, window: HOUR });
        patient.took("http://x", 7).unwrap();
    }

    #[test]
    fn bytes_earn_time() {
        let mut pace = TransferMonitor::new(DownloadLimits { deadline: NONE, least_speed: 1, window: HOUR });
        assert!(matches!(pace.check("http://x"), Err(HubError::TooLate { received_bytes: 0, .. })));
        pace.took("http://x", 100).unwrap();
    }
}
