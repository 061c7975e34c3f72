//! Files that may not become larger.

/// From now on a write beyond the limit on the size of files (`ulimit -f`) is an error like that of a full disk, instead
/// of the end of the process. It concerns the whole process and the programs it starts. On systems other than unix there
/// is no such limit.
pub fn file_size_limits_are_errors() {
    #[cfg(unix)]
    // SAFETY: ignoring a signal runs no code of ours and touches no memory; the call fails only for numbers that are no
    // signal's. `tests/file_size.rs` writes beyond a limit.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
