//! Every budget of this crate.

use std::time::Duration;

/// Longest header, in bytes. A header has some 100 bytes a weight and 35 a range of its image.
pub const HEADER_BYTES: u64 = 64 << 20;
/// Most images of an entry.
pub const IMAGES: usize = 1 << 17;
/// Longest name of an image, in bytes.
pub const NAME_BYTES: usize = 4096;
/// Images begin at multiples of this many bytes, so that each can be mapped.
pub const ALIGN: u64 = 4096;
/// Bytes of an image that share one checksum, in entries written here.
pub const RANGE_BYTES: u64 = 4 << 20;
/// Fewest and most bytes of a range in entries read here.
pub const RANGES: std::ops::RangeInclusive<u64> = 65_536..=1 << 30;
/// Bytes written at once, at a multiple of as many: a large page of x86-64, and of AArch64 with small ones of 4 KiB.
pub const BLOCK_BYTES: u64 = 2 << 20;
/// Bytes written before the system is told to bring them to the disk.
pub const SYNC_BYTES: u64 = 64 << 20;
/// Bytes that stay free on the disk whatever the limit says.
pub const KEEP_FREE: u64 = 1 << 30;
/// Longest mark of an entry, in bytes.
pub const MARK_BYTES: u64 = 4096;
/// Time that must have passed since an entry's last change before its times tell a later change: the clocks of some file
/// systems tick every two seconds.
pub const SETTLED: Duration = Duration::from_secs(2);
/// The same where a file's time has parts of a second: those clocks tick a hundred times a second or more.
pub const SETTLED_FINE: Duration = Duration::from_millis(200);
/// Times that the lock of a folder is tried, and the time between: writers hold it for moments.
pub const LOCK_TRIES: u32 = 200;
/// As above.
pub const LOCK_WAIT: Duration = Duration::from_millis(10);
/// Files of a folder that are looked at.
pub const FILES: usize = 100_000;
/// Age at which a text that was never finished is removed.
pub const UNFINISHED: Duration = Duration::from_secs(24 * 60 * 60);
