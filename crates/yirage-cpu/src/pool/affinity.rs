//! The processors this process may use, and pinning a thread to one of them.

/// Numbers of the processors this thread may run on, ascending.
///
/// # Errors
/// What the system said, as text; on systems without affinity masks always.
#[cfg(target_os = "linux")]
pub fn allowed_cpus() -> Result<Vec<usize>, String> {
    // SAFETY: a zeroed cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the set is as large as we say.
    let rc = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &mut set) };
    if rc != 0 {
        return Err(format!("sched_getaffinity: {}", std::io::Error::last_os_error()));
    }
    // SAFETY: CPU_ISSET reads inside the set for numbers below its size.
    Ok((0..libc::CPU_SETSIZE as usize).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &set) }).collect())
}

/// As on Linux, where it exists.
///
/// # Errors
/// Always: this system has no affinity masks.
#[cfg(not(target_os = "linux"))]
pub fn allowed_cpus() -> Result<Vec<usize>, String> {
    Err("this system has no affinity masks".to_owned())
}

/// Pins the calling thread.
#[cfg(target_os = "linux")]
pub(super) fn pin(cpu: usize) -> Result<(), String> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(format!("processor {cpu} is beyond the {} of an affinity mask", libc::CPU_SETSIZE));
    }
    // SAFETY: a zeroed cpu_set_t is an empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the number is inside the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the set is as large as we say.
    match unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set) } {
        0 => Ok(()),
        _ => Err(format!("pinning to processor {cpu} was refused: {}", std::io::Error::last_os_error())),
    }
}

#[cfg(not(target_os = "linux"))]
pub(super) fn pin(cpu: usize) -> Result<(), String> {
    Err(format!("pinning to processor {cpu}: this system has no affinity masks"))
}
