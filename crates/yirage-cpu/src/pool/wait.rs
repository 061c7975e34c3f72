//! How a thread waits: spin, then yield the processor, then (where the caller can be woken) sleep.

/// Pauses before the first yield: some tens of microseconds, longer than any balanced phase change.
const SPINS: u32 = 2000;
/// Yields before sleep is advised: a few hundred microseconds on an idle machine.
const YIELDS: u32 = 500;

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
        } else {
            std::thread::yield_now();
        }
        self.0 = self.0.saturating_add(1);
    }

    /// Whether the wait has been so long that the thread should sleep if it can.
    pub(super) fn should_sleep(&self) -> bool {
        self.0 >= SPINS + YIELDS
    }
}
