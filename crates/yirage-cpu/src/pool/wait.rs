//! How a thread waits: spin, then sleep.
//!
//! No thread yields its processor: where others want it as well, recent systems charge a thread that yields with the whole
//! turn that it gave away, and it comes back much later than what it waits for. One that sleeps keeps its claim.

use std::time::Duration;

/// How long a wait spins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpinPolicy {
    /// Pauses before the first nap in a run.
    spins: u32,
    /// Pauses between runs before a worker sleeps until it is woken.
    idle: u32,
}

impl SpinPolicy {
    /// For threads that each have a processor: spins for some tens of microseconds, longer than any balanced phase change,
    /// and for a few hundred between runs.
    pub(crate) const ALONE: SpinPolicy = SpinPolicy { spins: 2000, idle: 10_000 };
    /// For threads that share processors: whoever is waited for may need this one.
    pub(crate) const CROWDED: SpinPolicy = SpinPolicy { spins: 20, idle: 20 };
}

/// A nap of one who must look again by itself.
const NAP: Duration = Duration::from_micros(20);

/// Counts the rounds of one wait.
pub(crate) struct Backoff {
    spins: u32,
    rounds: u32,
}

impl Backoff {
    /// For a wait inside of a run.
    pub(crate) fn new(patience: SpinPolicy) -> Backoff {
        Backoff { spins: patience.spins, rounds: 0 }
    }

    /// For a wait between runs.
    pub(super) fn idle(patience: SpinPolicy) -> Backoff {
        Backoff { spins: patience.idle, rounds: 0 }
    }

    /// One round of waiting.
    #[inline]
    pub(crate) fn snooze(&mut self) {
        if self.should_sleep() {
            std::thread::sleep(NAP);
        } else {
            std::hint::spin_loop();
            self.rounds += 1;
        }
    }

    /// Whether the wait has been so long that the thread should sleep until it is woken, if it can be.
    pub(super) fn should_sleep(&self) -> bool {
        self.rounds >= self.spins
    }
}
