//! Memory that was freed and that the C library keeps.
//!
//! glibc gives back what lies at the end of its arenas alone, so that a process keeps about as much as it needed at its busiest,
//! and slowly more: small blocks that stay keep what lies below them.

/// Gives whole free pages back to the system, wherever in the heap they lie. Takes a millisecond for some tens of megabytes, and
/// what is allocated next is mapped again: for moments in which nothing is to be done.
///
/// With glibc (`malloc_trim(3)`); other C libraries have nothing of the kind or do it by themselves, and this does nothing.
pub fn give_back_free_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it may be called at any time by any thread (malloc_trim(3): MT-Safe) and touches only what is free.
    unsafe {
        libc::malloc_trim(0);
    }
}
