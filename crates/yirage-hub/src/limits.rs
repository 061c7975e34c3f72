//! How much time and room others get: servers, archives, folders. The only place that holds these numbers.

use std::time::Duration;

/// How long connecting may take, name look-up and TLS included each.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection may stay silent.
pub const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the answer to a question may take, all tries together; a file gets as long, and the time that its bytes
/// take at [`LEAST_SPEED`].
pub const DEADLINE: Duration = Duration::from_secs(300);
/// Bytes a second that a download has to bring; below that, it is given up. A modem is faster.
pub const LEAST_SPEED: u64 = 4 << 10;
/// Over how long the speed is measured: shorter pauses are forgiven.
pub const SPEED_WINDOW: Duration = Duration::from_secs(60);

/// More redirects than these are a circle.
pub(crate) const MAX_REDIRECTS: usize = 10;
/// Longer answers to questions (not files) are refused.
pub(crate) const MAX_ANSWER_BYTES: u64 = 32 << 20;
/// More files in one repository are refused; in a folder, they are not looked at.
pub(crate) const MAX_FILES: usize = 100_000;
/// Deeper folders in a snapshot are not looked into.
pub(crate) const MAX_DEPTH: usize = 8;
/// A file that says which commit a revision is, or what the token is, has no more.
pub(crate) const MAX_NOTE_BYTES: u64 = 4096;
/// An archive with more entries is not one of ours.
pub(crate) const MAX_ENTRIES: usize = 4096;
/// How much of the package client's own words an error repeats.
pub(crate) const MAX_REASON_BYTES: usize = 600;
/// How many names an error lists.
pub(crate) const MAX_NAMES: usize = 8;
