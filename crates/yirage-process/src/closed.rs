//! Whether the process began without a standard output.
//!
//! Rust's library opens `/dev/null` in its place before `main`, so that no file that is opened later takes its number:
//! results written there vanish without an error. Only what runs still earlier can tell.

#[cfg(all(unix, not(target_vendor = "apple")))]
mod early {
    use std::sync::atomic::{AtomicBool, Ordering};

    pub(super) static CLOSED: AtomicBool = AtomicBool::new(false);

    extern "C" fn look() {
        // SAFETY: asking for a descriptor's flags changes nothing and fails for a number that is none.
        let closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } == -1;
        CLOSED.store(closed, Ordering::Relaxed);
    }

    /// The loader calls what stands in this section before anything of Rust's library runs.
    // SAFETY: the section holds pointers to functions of this signature, and `look` uses nothing that has to be set up
    // first. `tests/closed.rs` starts a process of each kind.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;
}

/// Whether standard output was closed when the process began, as by `>&-` in a shell. Systems whose loader is not asked
/// (those of Apple and Windows) say no.
#[must_use]
pub fn standard_output_was_closed() -> bool {
    #[cfg(all(unix, not(target_vendor = "apple")))]
    return early::CLOSED.load(std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(all(unix, not(target_vendor = "apple"))))]
    false
}
