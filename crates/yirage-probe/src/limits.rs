//! Every limit of this crate.

use std::time::Duration;

/// How long a maker's library may take to answer. Starting a driver takes seconds on machines with many devices.
pub(crate) const DEADLINE: Duration = Duration::from_secs(10);
/// The most devices that are taken from one answer. A larger number is no answer of a working library.
pub(crate) const MOST_DEVICES: u32 = 1024;
/// The most bytes of a file that lists folders of libraries.
pub(crate) const FOLDER_LIST_BYTES: u64 = 1 << 20;
/// The most bytes of a file that has a driver's version.
pub(crate) const MOST_VERSION_BYTES: u64 = 64 << 10;
/// The most program headers of a library. The largest have some tens.
pub(crate) const MOST_HEADERS: u16 = 512;
