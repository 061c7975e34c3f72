//! How many threads there may be: the questions about the processor that come before any backend is opened.

/// Most threads that may be asked for: a multiple of the processors allowed to this process.
#[cfg(feature = "cpu")]
pub fn most_threads() -> usize {
    yirage_cpu::pool::ThreadBudgetInputs::read().most()
}

/// As with the backend that would take them; without it, one.
#[cfg(not(feature = "cpu"))]
pub fn most_threads() -> usize {
    1
}

/// Threads that a device has where nobody asks for a number.
#[cfg(feature = "cpu")]
pub fn default_threads() -> usize {
    yirage_cpu::pool::ThreadBudgetInputs::read().budget(None).0
}

/// As with the backend that would have them; without it, one.
#[cfg(not(feature = "cpu"))]
pub fn default_threads() -> usize {
    1
}
