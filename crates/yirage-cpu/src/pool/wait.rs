//! How a thread waits: spin, then yield the processor, then sleep.

use std::time::Duration;

/// How long a wait spins and yields.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    /// Pauses before the first yield.
    spins: u32,
    /// Yields before the first sleep.
    yields: u32,
}

impl Patience {
    /// For threads that each have a processor: spins for some tens of microseconds, longer than any balanced phase change,
    /// and yields for a few hundred.
    pub(crate) const ALONE: Patience = Patience { spins: 2000, yields: 500 };
    /// For threads that share processors: whoever is waited for may need this one.
    pub(crate) const CROWDED: Patience = Patience { spins: 20, yields: 4 };
}

/// A nap of one who must look again by itself.
const NAP: Duration = Duration::from_micros(20);

/// Counts the rounds of one wait.
pub(crate) struct Backoff {
    patience: Patience,
    rounds: u32,
}

impl Backoff {
    pub(crate) fn new(patience: Patience) -> Backoff {
        Backoff { patience, rounds: 0 }
    }

    /// One round of waiting.
    #[inline]
    pub(crate) fn snooze(&mut self) {
        if self.rounds < self.patience.spins {
            std::hint::spin_loop();
        } else if !self.should_sleep() {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
        }
        self.rounds = self.rounds.saturating_add(1);
    }

    /// Whether the wait has been so long that the thread should sleep until it is woken, if it can be.
    pub(super) fn should_sleep(&self) -> bool {
        self.rounds >= self.patience.spins + self.patience.yields
    }
}
