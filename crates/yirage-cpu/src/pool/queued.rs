//! How long threads have waited for a processor although they had something to do, as the system counts it.

use std::fs::File;
use std::io;
use std::time::Duration;

/// A thread's count.
pub(crate) struct Queued(File);

impl Queued {
    /// Of a thread of this process, by the number that the system gave it.
    ///
    /// # Errors
    /// A system that does not count this.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(thread: u32) -> io::Result<Queued> {
        let counted = Queued(File::open(format!("/proc/self/task/{thread}/schedstat"))?);
        counted.read()?;
        Ok(counted)
    }

    /// As on Linux, where it is counted.
    ///
    /// # Errors
    /// Always.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn of(_thread: u32) -> io::Result<Queued> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "this system does not count it"))
    }

    /// Since the thread began. A wait that goes on is counted once it is over.
    ///
    /// # Errors
    /// A thread that has ended.
    pub(crate) fn read(&self) -> io::Result<Duration> {
        let mut text = [0; 64];
        let length = read_at_start(&self.0, &mut text)?;
        let nanos = std::str::from_utf8(&text[..length]).ok().and_then(second).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Duration::from_nanos(nanos))
    }
}

/// "time running, time waited, turns", in nanoseconds.
fn second(text: &str) -> Option<u64> {
    text.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(unix)]
fn read_at_start(file: &File, into: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, 0)
}

#[cfg(not(unix))]
fn read_at_start(_: &File, _: &mut [u8]) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The number that the system gave the calling thread.
#[cfg(target_os = "linux")]
pub(crate) fn this_thread() -> u32 {
    // SAFETY: the call has no arguments and cannot fail.
    unsafe { libc::gettid() as u32 }
}

/// Threads have no such number here that would be asked for.
#[cfg(not(target_os = "linux"))]
pub(crate) fn this_thread() -> u32 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_number_is_the_time_waited() {
        assert_eq!(second("386291 111958 2\n"), Some(111_958));
        assert_eq!(["", "1", "1 x 2", "1 -2 3"].map(second), [None; 4]);
    }

    #[test]
    fn a_thread_that_is_not_there_is_an_error() {
        assert!(Queued::of(u32::MAX).is_err());
    }
}
