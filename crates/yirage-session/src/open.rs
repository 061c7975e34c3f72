//! How many jobs are open, and how many may be.

use crate::error::SessionError;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use yirage_engine::limits::MAX_SEQS;

/// Jobs that may be open at once.
const MOST: usize = MAX_SEQS as usize;

/// The jobs that are open.
#[derive(Clone, Default)]
pub(crate) struct OpenJobs(Arc<AtomicUsize>);

/// One of them, for as long as it is kept.
pub(crate) struct OpenJob(Arc<AtomicUsize>);

impl OpenJobs {
    /// Opens a job.
    ///
    /// # Errors
    /// [`SessionError::Busy`].
    pub(crate) fn open(&self) -> Result<OpenJob, SessionError> {
        let more = |n: usize| (n < MOST).then_some(n + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|most| SessionError::Busy { most })?;
        Ok(OpenJob(self.0.clone()))
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for OpenJob {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_more_than_the_most_is_refused_until_one_ends() {
        let jobs = OpenJobs::default();
        let mut open: Vec<OpenJob> = (0..MOST).map(|_| jobs.open().unwrap()).collect();
        assert!(matches!(jobs.open(), Err(SessionError::Busy { most: MOST })));
        open.pop();
        assert_eq!(jobs.count(), MOST - 1);
        open.push(jobs.open().unwrap());
        assert!(jobs.open().is_err());
        drop(open);
        assert_eq!(jobs.count(), 0);
    }
}
