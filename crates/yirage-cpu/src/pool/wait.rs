//! How a thread waits: spin, then yield the processor, then sleep.

use std::time::Duration;

/// Pauses before the first yield: some tens of microseconds, longer than any balanced phase change.
const SPINS: u32 = 2000;
/// Yields before sleep is advised: a few hundred microseconds on an idle machine.
const YIELDS: u32 = 500;
/// A nap of one who must look again by itself. Where threads outnumber processors, whoever is waited for gets to run.
const NAP: Duration = Duration::from_micros(20);

/// Counts the rounds of one wait.
pub(crate) struct Backoff(u32);

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff(0)
    }

    /// One round of waiting.
    #[inline]
    pub(crate) fn snooze(&mut self) {
        if self.0 < SPINS {
            std::hint::spin_loop();
        } else if !self.should_sleep() {
            std::thread::yield_now();
        } else {
            std::thread::sleep(NAP);
        }
        self.0 = self.0.saturating_add(1);
    }

    /// Whether the wait has been so long that the thread should sleep until it is woken, if it can be.
    pub(super) fn should_sleep(&self) -> bool {
        self.0 >= SPINS + YIELDS
    }
}
