//! What is bounded here.

use std::time::Duration;

/// What offsets of values in a buffer are multiples of, in bytes: a line of the second-level cache, twice.
pub(crate) const ALIGN: u32 = 256;
/// Steps that may be on a stream at once: one that runs, and the next one.
pub(crate) const IN_FLIGHT: usize = 2;
/// Pieces of page-locked memory that are kept for the next downloads.
pub(crate) const MOST_KEPT_PINNED: usize = 16;
/// Bytes of the smallest of them.
pub(crate) const LEAST_PINNED: usize = 4096;
/// How long a wait asks without a pause: a step of a small model takes less, and a pause would be a part of it.
pub(crate) const SPIN: Duration = Duration::from_millis(2);
/// How long it pauses then.
pub(crate) const PAUSE: Duration = Duration::from_micros(100);
/// How long memory that is on its way back is waited for where there is no other.
pub(crate) const RECLAIM: Duration = Duration::from_secs(60);
/// How long a clock counts from one event: times are told in floats of milliseconds.
pub(crate) const REBASE: Duration = Duration::from_secs(10);
/// Bytes of a file of compiled code at most: two for each of the code's.
pub(crate) const CODE_BYTES: u64 = 16 << 20;
/// Bytes of all such files of a folder.
pub(crate) const CODE_FOLDER_BYTES: u64 = 256 << 20;
/// Most bytes that the compiler's own words take of an error.
pub(crate) const MOST_LOG: usize = 4000;
