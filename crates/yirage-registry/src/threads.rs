//! How many threads may be asked for: the one question about the processor that comes before any backend is opened.

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
