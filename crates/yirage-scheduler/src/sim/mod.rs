//! Simulation of the scheduler and the cache bookkeeping against a model device.
//!
//! The device's "attention" verifies that each block and offset it may read holds the entry of exactly that token
//! history, which catches wrong tables, early frees, sharing mistakes and stale prefix hits. The "model" is a hash of
//! the history, so each request's output alone is known beforehand.

mod device;
mod driver;
mod fairness;
mod job;
mod properties;
mod ranks;
mod setup;

use driver::{Coverage, SchedSimDriver};
use setup::SchedSimSetup;
use yirage_ir::rng::{Rng, mix};

/// A number in `low..=high`.
fn range(rng: &mut Rng, low: usize, high: usize) -> usize {
    low + rng.index(high - low + 1)
}

/// True in `percent` of 100 cases.
fn chance(rng: &mut Rng, percent: usize) -> bool {
    rng.index(100) < percent
}
