//! The limits of plans, which may come from files.

/// Most workers of a task program.
pub(crate) const MAX_WORKERS: usize = 1024;
/// Most tasks, and most counters, of a task program.
pub(crate) const MAX_TASKS: usize = 1 << 22;
/// Most tasks times workers of a task program: what has ended before each task is a number a worker.
pub(crate) const MAX_CLOCKS: usize = 1 << 28;
/// Largest value of a bucket's symbol: positions and rows are counted in 32-bit integers.
pub const MAX_SYMBOL: u32 = i32::MAX as u32;
/// Most bytes of a step input at the bucket's largest sizes.
pub const MAX_STEP_INPUT_BYTES: u64 = 1 << 56;
/// Most bytes of an arena.
pub const MAX_ARENA: u64 = 1 << 48;
