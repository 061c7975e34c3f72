//! How large a kernel may be.

/// Threads of a group: what every device that computes has.
pub const MAX_THREADS: u32 = 1024;

/// Bytes that a group shares.
pub const MAX_SHARED_BYTES: u64 = 64 << 10;

/// Bodies in one another.
pub const MAX_BODY_DEPTH: usize = 64;

/// Registers of a kernel.
pub const MAX_REGISTERS: u32 = 1 << 20;
