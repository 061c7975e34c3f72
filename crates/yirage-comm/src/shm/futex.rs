//! Waiting for a word that another process writes.

use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Waits while the word is `seen`, and at most so long. It may come back before: the caller looks again.
pub(super) fn wait(word: &AtomicU32, seen: u32, most: Duration) {
    let most = libc::timespec { tv_sec: most.as_secs() as libc::time_t, tv_nsec: most.subsec_nanos().into() };
    // SAFETY: the system reads the word, which lives as long as it is borrowed, and the time above.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, seen, &raw const most) };
}

/// Wakes all who wait for the word, in any process.
pub(super) fn wake_all(word: &AtomicU32) {
    // SAFETY: the system looks for those who wait at the word's address, and reads nothing.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
