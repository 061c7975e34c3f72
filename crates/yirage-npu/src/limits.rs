//! What is bounded here.

use std::time::Duration;

/// What offsets of values in a buffer, and of temporaries in a workspace, are multiples of, in bytes: what `aclrtMalloc` gives.
pub(crate) const ALIGN: u32 = 512;
/// Steps that may be on a stream at once: one that runs, and the next one.
pub(crate) const IN_FLIGHT: usize = 2;
/// Pieces of page-locked memory that are kept for the next copies.
pub(crate) const MOST_KEPT_PINNED: usize = 16;
/// Bytes of the smallest of them.
pub(crate) const LEAST_PINNED: usize = 4096;
/// How long a wait asks without a pause.
pub(crate) const SPIN: Duration = Duration::from_millis(2);
/// How long one wait of the stream's own takes, in its milliseconds: what failed is told by it alone.
pub(crate) const STREAM_WAIT_MS: i32 = 1;
/// How long a wait for a node that the host evaluates, or for memory on its way back, may take.
pub(crate) const DRAIN: Duration = Duration::from_secs(60);
/// How long a stream of a rank that has lost its group is waited for before it is left as it is.
pub(crate) const ABANDON: Duration = Duration::from_millis(500);
