//! Memory that ends at a page which nobody may touch: an instrument of tests. Sanitizers see no assembly, a page does.

use std::ptr::NonNull;

/// Whether this system has such pages.
pub const SUPPORTED: bool = cfg!(unix);

/// Pages of which the last may not be touched.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
    /// From the start to the buffer.
    skipped: usize,
}

impl Mapping {
    /// Zeroed pages for `len` bytes from a multiple of `align` on, as near to the last page as that lets them.
    #[cfg(unix)]
    pub(super) fn new(len: usize, align: usize) -> Option<Mapping> {
        // SAFETY: it reads a constant of the system.
        let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok().filter(|page| *page >= 64)?;
        let held = len.checked_next_multiple_of(align.clamp(1, 64))?;
        let touched = held.checked_next_multiple_of(page)?;
        let bytes = touched.checked_add(page)?;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        // SAFETY: an anonymous mapping at an address of the system's choice touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let mapping = Mapping { start: NonNull::new(start.cast())?, bytes, skipped: touched - held };
        // SAFETY: the last page of the mapping made above.
        let refused = unsafe { libc::mprotect(start.wrapping_byte_add(touched), page, libc::PROT_NONE) } != 0;
        if refused {
            mapping.give_back();
            return None;
        }
        Some(mapping)
    }

    #[cfg(not(unix))]
    pub(super) fn new(_: usize, _: usize) -> Option<Mapping> {
        None
    }

    /// The first byte of the buffer.
    pub(super) fn first(&self) -> NonNull<u8> {
        // SAFETY: `new` left so many bytes before the buffer in the mapping.
        unsafe { self.start.add(self.skipped) }
    }

    /// Gives the pages back, once.
    pub(super) fn give_back(&self) {
        // SAFETY: `new` mapped exactly this range, and the buffer's owner drops it once.
        #[cfg(unix)]
        unsafe {
            libc::munmap(self.start.as_ptr().cast(), self.bytes);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::Supply;
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    #[test]
    fn buffers_are_zeroed_and_end_at_the_page() {
        for (len, align) in [(0, 64), (4, 4), (100, 4), (4096, 64), (4100, 64), (100_000, 8)] {
            let mut buf = Supply::Guarded.zeroed(len, align).unwrap();
            assert_eq!((buf.len(), buf.as_ptr() as usize % align), (len, 0));
            assert!(buf.as_slice().iter().all(|b| *b == 0));
            buf.as_mut_slice().fill(7);
            let end = buf.as_ptr() as usize + len;
            assert!(end.next_multiple_of(4096) - end < align, "{len} bytes end at {end:#x}");
        }
    }

    /// Runs a test of this file as a process of its own; the signal that ended it.
    #[allow(clippy::unwrap_used)] // a test may stop at anything unexpected
    fn signal(test: &str) -> Option<i32> {
        let mut child = Command::new(std::env::current_exe().unwrap());
        let test = format!("memory::guarded::tests::{test}");
        child.args(["--exact", &test, "--ignored", "--nocapture"]).output().unwrap().status.signal()
    }

    #[test]
    fn reading_or_writing_past_the_end_is_a_fault() {
        for test in ["child_reads_past_the_end", "child_writes_past_the_end"] {
            let signal = signal(test);
            assert!(signal == Some(libc::SIGSEGV) || signal == Some(libc::SIGBUS), "{test}: {signal:?}");
        }
    }

    #[test]
    #[ignore = "run by reading_or_writing_past_the_end_is_a_fault"]
    fn child_reads_past_the_end() {
        let buf = Supply::Guarded.zeroed(1000, 4).unwrap();
        // SAFETY: it is not; this is the fault that is looked for, and the process is made for it.
        std::hint::black_box(unsafe { buf.as_ptr().add(1000).read_volatile() });
    }

    #[test]
    #[ignore = "run by reading_or_writing_past_the_end_is_a_fault"]
    fn child_writes_past_the_end() {
        let mut buf = Supply::Guarded.zeroed(1000, 4).unwrap();
        // SAFETY: it is not; this is the fault that is looked for, and the process is made for it.
        unsafe { buf.as_mut_ptr().add(1000).write_volatile(1) };
    }
}
