//! Leaves out workers whose processors are taken by others: a worker that the system has put aside holds all others
//! at each place where they wait for it.
//!
//! [`StragglerController`] decides by what steps took and knows no clock and no threads; [`WorkerMonitor`] reads what the system counts;
//! [`StragglerControllers`] has a controller for each size of a program's steps. Results do not depend on it: who runs a task is not
//! what the task computes.

mod controller;
mod watch;

pub(crate) use watch::WorkerMonitor;

use crate::pool::Team;
use controller::StragglerController;
use std::time::Duration;

/// The controllers of a program.
pub(crate) struct StragglerControllers {
    workers: usize,
    /// By the power of two from which on the number of tokens is it: steps of such sizes are compared with each other.
    sizes: Vec<(u32, StragglerController)>,
}

impl StragglerControllers {
    /// For a program on so many workers.
    pub(crate) fn new(workers: usize) -> StragglerControllers {
        StragglerControllers { workers, sizes: Vec::new() }
    }

    fn of(&mut self, tokens: u32) -> &mut StragglerController {
        let size = tokens.max(1).ilog2();
        let at = self.sizes.iter().position(|(s, _)| *s == size).unwrap_or_else(|| {
            self.sizes.push((size, StragglerController::new(self.workers)));
            self.sizes.len() - 1
        });
        &mut self.sizes[at].1
    }

    /// Who runs the next step of so many tokens.
    pub(crate) fn team(&mut self, tokens: u32) -> &Team {
        self.of(tokens).team()
    }

    /// That team has run a step of so many tokens, which `took` so long.
    pub(crate) fn took(&mut self, tokens: u32, took: Duration, watch: &mut WorkerMonitor) {
        let reading = watch.after(took);
        let Some(change) = self.of(tokens).took(watch.now(), took, reading.as_deref()) else { return };
        tracing::debug!(
            tokens,
            left_out = ?change.left_out(),
            milliseconds = change.seconds * 1e3,
            before = change.usual * 1e3,
            "{}",
            change.what
        );
    }
}
