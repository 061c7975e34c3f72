//! Simulation of the scheduler and the cache bookkeeping against a model device.
//!
//! The device's "attention" verifies that each block and offset it may read holds the entry of exactly that token
//! history, which catches wrong tables, early frees, sharing mistakes and stale prefix hits. The "model" is a hash of
//! the history, so each request's output alone is known beforehand.

mod device;
mod driver;
mod job;
mod properties;
mod setup;

use driver::{Coverage, Driver};
use setup::Setup;

/// A small generator for the simulations (SplitMix64); every run is a pure function of its seed.
pub(super) struct Rng(pub(super) u64);

impl Rng {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number in `low..=high`.
    pub(super) fn range(&mut self, low: usize, high: usize) -> usize {
        low + (self.next() % (high - low + 1) as u64) as usize
    }

    /// True in `percent` of 100 cases.
    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.range(0, 99) < percent
    }
}

/// The finaliser of SplitMix64.
pub(super) fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
