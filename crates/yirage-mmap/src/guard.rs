//! Reading what a file no longer has: an error instead of the end of the process.
//!
//! A page that cannot be had (the file was truncated, the disk cannot be read) raises `SIGBUS` in whoever touches it.
//! After [`guard_mappings`] such a read gives zeros, and the mapping it was of is lost: [`MappedFile::intact`] says so
//! from then on. Whoever reads a mapping asks before anything that came of it is used.
//!
//! [`MappedFile::intact`]: crate::MappedFile::intact

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Most files that are mapped at once.
pub(crate) const MAPPINGS: usize = 4096;

/// A mapping's addresses, for a signal handler to find: numbers that are read and written whole, and no lock.
struct GuardedMapping {
    /// The first address; [`FREE`] and [`TAKEN`] are none.
    start: AtomicUsize,
    len: AtomicUsize,
    lost: AtomicBool,
}

const FREE: usize = 0;
const TAKEN: usize = 1;

static GUARDED_MAPPINGS: [GuardedMapping; MAPPINGS] = [const {
    GuardedMapping { start: AtomicUsize::new(FREE), len: AtomicUsize::new(0), lost: AtomicBool::new(false) }
}; MAPPINGS];

impl GuardedMapping {
    /// The end of the mapping, if `address` lies in it.
    ///
    /// The mapping that a thread reads stays where it is while the thread is in the handler, and no other one overlaps
    /// it: any pair of numbers that belonged together at some moment tells them apart. A pair that did not is found out
    /// by the start being read twice, since it is taken away first and given last.
    #[cfg(unix)]
    fn end_if_holds(&self, address: usize) -> Option<usize> {
        let start = self.start.load(Ordering::SeqCst);
        let end = start + self.len.load(Ordering::SeqCst);
        let is_one = start != FREE && start != TAKEN && self.start.load(Ordering::SeqCst) == start;
        (is_one && (start..end).contains(&address)).then_some(end)
    }
}

/// A mapping's place in the table, free again when this is dropped: before the mapping ends.
#[derive(Debug)]
pub(crate) struct MappingGuard(Option<usize>);

impl MappingGuard {
    /// Watches the `len` bytes from address `start` on; `None` where the table is full.
    pub(crate) fn new(start: usize, len: usize) -> Option<MappingGuard> {
        if len == 0 {
            return Some(MappingGuard(None));
        }
        let take = |slot: &GuardedMapping| {
            slot.start.compare_exchange(FREE, TAKEN, Ordering::SeqCst, Ordering::SeqCst).is_ok()
        };
        let place = GUARDED_MAPPINGS.iter().position(take)?;
        let slot = &GUARDED_MAPPINGS[place];
        slot.lost.store(false, Ordering::SeqCst);
        slot.len.store(len, Ordering::SeqCst);
        slot.start.store(start, Ordering::SeqCst);
        Some(MappingGuard(Some(place)))
    }

    /// Whether a page could not be had.
    pub(crate) fn is_lost(&self) -> bool {
        self.0.is_some_and(|place| GUARDED_MAPPINGS[place].lost.load(Ordering::SeqCst))
    }
}

impl Drop for MappingGuard {
    fn drop(&mut self) {
        if let Some(place) = self.0 {
            GUARDED_MAPPINGS[place].start.store(FREE, Ordering::SeqCst);
        }
    }
}

/// From now on a page of a mapped file that cannot be had reads as zeros, and [`MappedFile::intact`] tells, instead of
/// the process ending. It concerns the whole process, so only its owner should ask for it. Any other cause of the same
/// signal does what it did before. On systems other than unix nothing changes.
///
/// # Errors
/// What the system says.
///
/// [`MappedFile::intact`]: crate::MappedFile::intact
pub fn guard_mappings() -> std::io::Result<()> {
    #[cfg(unix)]
    return handler::install();
    #[cfg(not(unix))]
    Ok(())
}

#[cfg(unix)]
mod handler {
    use super::{GUARDED_MAPPINGS, Ordering};
    use crate::release::page_size;
    use std::io;
    use std::mem::MaybeUninit;
    use std::ptr::{null, null_mut};
    use std::sync::OnceLock;

    /// What the handler needs besides the table, put there before it is installed.
    struct Before {
        page: usize,
        action: libc::sigaction,
    }

    static BEFORE: OnceLock<Before> = OnceLock::new();

    pub(super) fn install() -> io::Result<()> {
        let done = |result| if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) };
        let mut action = MaybeUninit::zeroed();
        // SAFETY: without a new action the call only writes the present one to `action`, which is large enough.
        done(unsafe { libc::sigaction(libc::SIGBUS, null(), action.as_mut_ptr()) })?;
        // SAFETY: the call succeeded, so it wrote; and zeros, which lay there before, are a `sigaction` as well.
        let mut action = unsafe { action.assume_init() };
        if BEFORE.set(Before { page: page_size(), action }).is_err() {
            return Ok(());
        }
        action.sa_sigaction = on_bus_error as extern "C" fn(_, _, _) as usize;
        // On the thread's own stack for signals where it has one: the fault may have come when there was no room left.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        // SAFETY: the set belongs to `action`, which lives; the call empties it.
        unsafe { libc::sigemptyset(&raw mut action.sa_mask) };
        // SAFETY: `action` is whole, and its function has the signature that SA_SIGINFO asks for and does nothing that a
        // handler may not do. `tests/guard.rs` truncates a mapped file and reads it.
        done(unsafe { libc::sigaction(libc::SIGBUS, &raw const action, null_mut()) })
    }

    /// Only atomics and system calls: it may run between any two instructions of the program.
    extern "C" fn on_bus_error(signal: i32, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        let Some(before) = BEFORE.get() else { return };
        // SAFETY: the system hands a valid record to a handler that was installed with SA_SIGINFO; the address is only
        // compared, and only where the system made the signal for a fault, which has one.
        let (code, address) = unsafe { ((*info).si_code, (*info).si_addr() as usize) };
        if code > 0 && replace(address, before.page) {
            return;
        }
        // Not ours. What was there before decides, when the instruction faults again; a signal that somebody sent does
        // not come again by itself.
        // SAFETY: the action was read from the system at install. Both calls may be made in a handler.
        unsafe {
            libc::sigaction(signal, &raw const before.action, null_mut());
            if code <= 0 {
                libc::raise(signal);
            }
        }
    }

    /// Puts zeros where a watched mapping cannot be read, from the page of `address` to its end, and marks it as lost.
    fn replace(address: usize, page: usize) -> bool {
        let of = |slot| super::GuardedMapping::end_if_holds(slot, address).map(|end| (slot, end));
        let Some((slot, end)) = GUARDED_MAPPINGS.iter().find_map(of) else { return false };
        // First, so that whoever sees the zeros sees this as well.
        slot.lost.store(true, Ordering::SeqCst);
        let first = address / page * page;
        let (zeros, fixed) = (libc::MAP_PRIVATE | libc::MAP_ANON, libc::MAP_FIXED);
        // SAFETY: the pages from `first` to `end` belong to the mapping of `slot` (the last one to its end, as mappings
        // are whole pages), which its owner is reading in this very moment and so has not ended. They stay mapped and
        // readable, so references into them stay valid, and end with the mapping. The call changes no memory else.
        let put = unsafe { libc::mmap(first as *mut _, end - first, libc::PROT_READ, zeros | fixed, -1, 0) };
        put != libc::MAP_FAILED
    }
}
