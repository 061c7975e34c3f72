//! Every budget of this crate.

use std::time::Duration;

/// Pairs of input and candidate that are measured. The median of their ratios decides.
pub const PAIRS: usize = 15;
/// A candidate is chosen where the median of candidate to input is below this.
pub const FASTER: f64 = 0.97;
/// Most time that one half of a pair takes, beside the step that reaches it.
pub const HALF: Duration = Duration::from_millis(20);
/// Candidates that are expected to take so much longer than the input are not measured.
pub const SLOWER: f64 = 1.1;
/// Longest text of a kept result, in bytes.
pub const ENTRY_BYTES: u64 = 16 << 20;
/// Bytes of results that a process keeps where nobody says how many.
pub const MEMORY_BYTES: u64 = 64 << 20;
/// Bytes of results on disk where nobody says how many.
pub const DISK_BYTES: u64 = 256 << 20;
/// Readings of each of a device's rates.
pub const READINGS: usize = 3;
/// The smallest steps that tell what a launch costs.
pub const LAUNCHES: usize = 101;
