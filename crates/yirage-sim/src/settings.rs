//! How a simulated accelerator behaves.

use crate::faults::Faults;
use std::time::Duration;

/// What an accelerator is like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    /// How many devices there are.
    pub devices: u32,
    /// Bytes of memory of each.
    pub memory: u64,
    /// What delays are drawn from.
    pub seed: u64,
    /// A command waits for up to so long before it runs.
    pub delay: Duration,
    /// A step takes so long beside what it computes.
    pub step: Duration,
    /// Steps that may be on the queue at once.
    pub in_flight: usize,
    /// Whether a step's launches are recorded and played again.
    pub captures_graphs: bool,
    /// What goes wrong.
    pub faults: Faults,
}

impl Default for Settings {
    /// One device of 4 GiB that never waits and never fails.
    fn default() -> Settings {
        Settings {
            devices: 1,
            memory: 4 << 30,
            seed: 0,
            delay: Duration::ZERO,
            step: Duration::ZERO,
            in_flight: 3,
            captures_graphs: true,
            faults: Faults::default(),
        }
    }
}
