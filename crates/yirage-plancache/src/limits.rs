//! Every budget of this crate.

/// Longest plan file, in bytes.
pub const FILE_BYTES: u64 = 32 << 20;
/// Bytes of plan files in a folder where nobody says how many.
pub const FOLDER_BYTES: u64 = 256 << 20;
/// Plans of calls in native mode that a cache remembers, in the host's memory.
pub const NATIVE_PLANS: usize = 16;
/// Bytes that the plans of a process take on their device where nobody says how many.
pub const CACHE_BYTES: u64 = 1 << 30;
