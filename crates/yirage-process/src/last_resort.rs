//! Where memory ends in spite of every prediction: the process ends with a message and an exit code of its own, not as
//! if it had crashed.
//!
//! Big buffers are asked for in ways that can fail, and what would not fit is known before. What remains are the many
//! small allocations of Rust's library, which aborts when one is refused. [`Allocator`] notes that refusal, and the
//! handler that [`install`] sets looks for the note when the abort comes. The C library and the beginning of a thread allocate
//! for themselves, past the allocator, and abort too: without a note the handler asks the system for as much as they ask for at
//! most. Where that is given, the abort stays what it is. A thread that finds no memory for its second stack panics before it does
//! anything, and whoever waits for what it would do waits for ever: that panic ends the process in the same way.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes of the last allocation that this thread was refused. Needs no destructor, so it can be read at any time.
    static REFUSED: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator, which notes what it refuses.
pub struct Allocator;

fn noted(block: *mut u8, bytes: usize) -> *mut u8 {
    if block.is_null() {
        REFUSED.set(bytes.max(1));
    }
    block
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what `GlobalAlloc` is promised, `System` is promised.
        noted(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: what `GlobalAlloc` is promised, `System` is promised.
        noted(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: what `GlobalAlloc` is promised, `System` is promised.
        noted(unsafe { System.realloc(block, layout, size) }, size)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: what `GlobalAlloc` is promised, `System` is promised.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Ends the process with `code` instead of an abort where an allocation was refused. Needs [`Allocator`] as the global
/// one.
#[cfg(unix)]
pub fn install(code: u8) {
    CODE.store(code, std::sync::atomic::Ordering::Relaxed);
    let handler: extern "C" fn(libc::c_int) = aborting;
    // SAFETY: the handler only reads its thread's note and an atomic, writes and exits, which signal handlers may.
    unsafe { libc::signal(libc::SIGABRT, handler as libc::sighandler_t) };
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        // Whoever has started such a thread would wait for it: it has panicked before it could do anything.
        if panic.location().is_some_and(|location| is_beginning_of_thread(location.file())) {
            end();
        }
        before(panic);
    }));
}

/// Whether a file of Rust's library is the one in which a thread panics for which there is no second stack when it begins.
#[cfg(unix)]
fn is_beginning_of_thread(file: &str) -> bool {
    file.ends_with("stack_overflow.rs")
}

/// As on Unix, where there are signals.
#[cfg(not(unix))]
pub fn install(_: u8) {}

#[cfg(unix)]
static CODE: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(1);

#[cfg(unix)]
extern "C" fn aborting(_: libc::c_int) {
    if REFUSED.get() != 0 || memory_is_refused() {
        end();
    }
}

/// Ends the process as one that has no memory left.
#[cfg(unix)]
fn end() -> ! {
    const MESSAGE: &[u8] =
        b"error: memory ran out; choose a shorter context, fewer threads or a smaller model, or raise the limit of memory\n";
    // SAFETY: both may be called from a signal handler or anywhere else, and the message lives as long as the process.
    unsafe {
        libc::write(libc::STDERR_FILENO, MESSAGE.as_ptr().cast(), MESSAGE.len());
        libc::_exit(CODE.load(std::sync::atomic::Ordering::Relaxed).into());
    }
}

/// Whether the system refuses what glibc asks for when its heap cannot grow, which is more than a thread asks for when it begins.
#[cfg(unix)]
fn memory_is_refused() -> bool {
    const BYTES: usize = 1 << 20;
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
    // SAFETY: a new mapping, wherever there is room for it, is nobody's memory; it is given back as it was given. Both are calls of
    // the system alone, without a lock or memory of the library.
    unsafe {
        let block = libc::mmap(std::ptr::null_mut(), BYTES, access, kind, -1, 0);
        block == libc::MAP_FAILED || libc::munmap(block, BYTES) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[cfg(unix)]
    #[test]
    fn a_thread_that_cannot_begin_is_told_from_other_panics() {
        assert!(is_beginning_of_thread("/rustc/0/library/std/src/sys/pal/unix/stack_overflow.rs"));
        assert!(!is_beginning_of_thread("crates/yirage-process/src/last_resort.rs"));
    }

    #[test]
    fn what_is_refused_is_noted_and_nothing_else() {
        let (small, absurd) = (Layout::new::<u64>(), Layout::from_size_align(isize::MAX as usize - 63, 8).unwrap());
        REFUSED.set(0);
        // SAFETY: neither layout is empty, and what was given is given back.
        unsafe {
            // Seen, so that the compiler may not do without it.
            let block = black_box(Allocator.alloc(small));
            Allocator.dealloc(block, small);
            assert_eq!(REFUSED.get(), 0);
            assert!(black_box(Allocator.alloc(absurd)).is_null());
        }
        assert_eq!(REFUSED.get(), isize::MAX as usize - 63);
    }
}
