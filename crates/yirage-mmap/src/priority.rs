//! Threads that compute only when nobody else wants to.

/// Puts the calling thread behind all others of the machine: it runs where a processor has nothing else to do. On
/// systems other than Linux nothing changes; a system that declines is no error, since this is a courtesy.
pub fn step_back() {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let none = libc::sched_param { sched_priority: 0 };
        // SAFETY: the call concerns the calling thread only (0) and reads `none`, which outlives it.
        unsafe {
            libc::sched_setscheduler(0, libc::SCHED_IDLE, &raw const none);
        }
    }
}
