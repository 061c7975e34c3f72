//! How far the queue has come, and what went wrong on the way.

use crate::errors::refused;
use crate::limits::{HANDOVER, MOST_KEPT_ERRORS};
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use yirage_hal::driver::DriverError;

/// The timeline of a queue.
#[derive(Default)]
pub(crate) struct SubmissionTimeline {
    state: Mutex<SubmissionState>,
    changed: Condvar,
}

#[derive(Default)]
struct SubmissionState {
    /// The last value that was asked for.
    signalled: u64,
    /// The last value that the device has come to.
    reached: u64,
    /// The submission behind which each value lies that the device has not come to.
    submissions: VecDeque<(u64, wgpu::SubmissionIndex)>,
    /// The first error since the last signal.
    error: Option<DriverError>,
    /// The first error before each signal.
    errors: BTreeMap<u64, DriverError>,
    lost: Option<String>,
}

impl SubmissionTimeline {
    fn state(&self) -> MutexGuard<'_, SubmissionState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something went wrong in what the next signal stands behind.
    pub(crate) fn note(&self, error: DriverError) {
        self.state().error.get_or_insert(error);
    }

    /// Something went wrong in what an earlier signal stood behind.
    pub(crate) fn note_at(&self, value: u64, error: DriverError) {
        self.state().errors.entry(value).or_insert(error);
    }

    /// Nothing more will come.
    pub(crate) fn lose(&self, why: &str) {
        self.state().lost.get_or_insert_with(|| why.to_owned());
        self.changed.notify_all();
    }

    pub(crate) fn check_lost(&self) -> Result<(), DriverError> {
        self.state().lost.clone().map_or(Ok(()), |why| Err(DriverError::Lost(why)))
    }

    /// The value that the next signal will have.
    pub(crate) fn next(&self) -> u64 {
        self.state().signalled + 1
    }

    /// A signal behind a submission.
    pub(crate) fn signal(&self, submission: wgpu::SubmissionIndex) -> u64 {
        let mut state = self.state();
        state.signalled += 1;
        let value = state.signalled;
        state.submissions.push_back((value, submission));
        if let Some(error) = state.error.take() {
            state.errors.insert(value, error);
        }
        if state.errors.len() > MOST_KEPT_ERRORS {
            state.errors.pop_first();
        }
        self.changed.notify_all();
        value
    }

    /// The device has come to a value. Of a lost one nothing is believed.
    pub(crate) fn reach(&self, value: u64) {
        let mut state = self.state();
        if state.lost.is_none() && value > state.reached {
            state.reached = value;
            state.submissions.retain(|&(signalled, _)| signalled > value);
        }
        self.changed.notify_all();
    }

    /// The last value that the device has come to.
    pub(crate) fn reached(&self, device: &wgpu::Device) -> Result<u64, DriverError> {
        self.check_lost()?;
        self.poll(device, wgpu::PollType::Poll)?;
        self.check_lost()?;
        Ok(self.state().reached)
    }

    /// Waits for a value.
    pub(crate) fn wait(&self, device: &wgpu::Device, value: u64, deadline: Duration) -> Result<(), DriverError> {
        let end = Instant::now().checked_add(deadline);
        loop {
            if let Some(over) = self.state().at(value) {
                return over;
            }
            let left = end.map_or(deadline, |end| end.saturating_duration_since(Instant::now()));
            self.poll_for(device, value, left)?;
            let state = self.state();
            if state.reached >= value || state.lost.is_some() {
                continue;
            }
            if left.is_zero() {
                let waited_ms = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
                return Err(DriverError::Deadline { waited_ms, reached: state.reached, wanted: value });
            }
            // Another thread may have been told, and is about to say so; or the signal is still to be given.
            drop(self.changed.wait_timeout(state, left.min(HANDOVER)));
        }
    }

    /// Lets the device come to a value for as long as `left`; of one that nobody has signalled, asks how far it is.
    fn poll_for(&self, device: &wgpu::Device, value: u64, left: Duration) -> Result<(), DriverError> {
        let behind = self.state().submissions.iter().find(|&&(signalled, _)| signalled >= value).cloned();
        let wait = |(_, submission)| wgpu::PollType::Wait { submission_index: Some(submission), timeout: Some(left) };
        self.poll(device, behind.map_or(wgpu::PollType::Poll, wait))
    }

    /// Asks the device how far it is, which tells all that are to be told.
    fn poll(&self, device: &wgpu::Device, how: wgpu::PollType) -> Result<(), DriverError> {
        // A driver that fails in a wait is a panic of wgpu's, after which the device is gone.
        let asked = catch_unwind(AssertUnwindSafe(|| match device.poll(how) {
            Ok(_) | Err(wgpu::PollError::Timeout) => Ok(()),
            // Of a device that was lost since, the submission is none; asking again tells of the loss.
            Err(error) => device.poll(wgpu::PollType::Poll).and(Err(error)),
        }));
        match asked {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => self.check_lost().and(Err(refused("wait", error.to_string()))),
            Err(_) => {
                self.lose("its driver failed while it was waited for");
                self.check_lost()
            }
        }
    }
}

impl SubmissionState {
    /// How a value ended; none where the device has not come to it.
    fn at(&mut self, value: u64) -> Option<Result<(), DriverError>> {
        if self.reached >= value {
            return Some(self.errors.remove(&value).map_or(Ok(()), Err));
        }
        self.lost.clone().map(|why| Err(DriverError::Lost(why)))
    }
}
