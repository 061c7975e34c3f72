//! Every budget of this crate.

use std::time::Duration;

/// Pairs of input and candidate that a look measures.
pub const PAIRS: usize = 15;
/// A candidate wins a look where the median of candidate to input is below this,
pub const FASTER: f64 = 0.97;
/// and it was the faster one in so many pairs: of equal graphs one is in 2 of 100 looks.
pub const WINS: u32 = 12;
/// A half of a pair was disturbed where its mean is above so many times its median, or its median above so many times that
/// of the fastest half.
pub const CALM: f64 = 1.25;
/// A look was disturbed where more than this part of its halves was.
pub const DISTURBED: f64 = 0.2;
/// Most time that one half of a pair takes, beside the step that reaches it.
pub const HALF: Duration = Duration::from_millis(20);
/// Most steps until it is chosen which executor runs a graph: more than the choice takes.
pub const SETTLING: usize = 64;
/// Candidates that are expected to take so much longer than the input are not measured.
pub const SLOWER: f64 = 1.1;
/// Most steps that warm a graph up, and most that are measured of it.
pub const STEPS: u32 = 1_000_000;
/// Most nodes that a search may look at, a thousand times as many as it does where nobody says.
pub const NODES: u64 = 100_000_000;
/// Most candidates that are measured.
pub const CANDIDATES: usize = 1000;
/// Longest time that a search may be given.
pub const LONGEST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// Most blocks along an axis of a grid, threads along one of a block, and iterations of a loop.
pub const TILES: u32 = 1 << 20;
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
