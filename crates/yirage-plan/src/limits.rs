//! The limits of plans, which may come from files.

/// Most workers of a task program.
pub(crate) const MAX_WORKERS: usize = 1024;
/// Most tasks, and most counters, of a task program.
pub(crate) const MAX_TASKS: usize = 1 << 22;
