//! Zeroed memory for weights, caches and activations: huge pages for big buffers, cache-line alignment for small
//! ones. Knows nothing of what lies in it.

mod guarded;

pub use guarded::SUPPORTED as GUARDS;

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicUsize, Ordering};
use thiserror::Error;

/// Buffers of at least this many bytes start on a huge-page boundary and ask for huge pages.
pub const HUGE_FROM: usize = 1 << 20;
/// Bytes of a huge page.
pub const HUGE_PAGE: usize = 2 << 20;
/// Bytes of a cache line.
pub const LINE: usize = 64;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

/// Bytes held by all [`HugeBuf`]s of this process.
pub fn bytes_in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// Asks for `bytes` from `first` on to be fetched into the second-level cache. The addresses need not be valid.
#[inline]
pub fn prefetch(first: *const u8, bytes: usize) {
    for at in (0..bytes).step_by(LINE) {
        let line = first.wrapping_add(at);
        // SAFETY: prefetches do not fault and change nothing.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(line.cast());
        }
        // SAFETY: prefetches do not fault and change nothing.
        #[cfg(target_arch = "aarch64")]
        unsafe {
            std::arch::asm!("prfm pldl2keep, [{}]", in(reg) line, options(nostack, readonly, preserves_flags));
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = line;
    }
}

/// The system had no memory left.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error(
    "cannot get {wanted} bytes of memory ({in_use} are in use already): use a smaller model, a smaller KV cache or free memory"
)]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub wanted: usize,
    /// Bytes held by buffers at that time.
    pub in_use: usize,
}

/// A zeroed buffer; 2 MiB aligned with `MADV_HUGEPAGE` from [`HUGE_FROM`] bytes, else 64-byte aligned.
///
/// Pages of big buffers are not touched here: the thread that first writes a page places it.
#[derive(Debug)]
pub struct HugeBuf {
    ptr: NonNull<u8>,
    len: usize,
    /// The mapping, if it ends at a page that nobody may touch.
    guarded: Option<guarded::Mapping>,
}

/// How a device gets memory for what kernels touch.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Supply {
    /// As is fastest.
    #[default]
    Plain,
    /// Each buffer ends at a page that nobody may touch.
    Guarded,
}

impl Supply {
    /// A zeroed buffer of `len` bytes. A guarded one begins at a multiple of `align` bytes, which divides 64: it ends at
    /// the page if `len` is one too, and less than `align` bytes before it if not.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system refuses.
    pub fn zeroed(self, len: usize, align: usize) -> Result<HugeBuf, OutOfMemory> {
        match self {
            Supply::Plain => HugeBuf::zeroed(len),
            Supply::Guarded => HugeBuf::guarded(len, align),
        }
    }
}

// SAFETY: the buffer is plain bytes owned by this value; sharing is governed by references like a `Vec<u8>`.
unsafe impl Send for HugeBuf {}
// SAFETY: the buffer is plain bytes owned by this value; sharing is governed by references like a `Vec<u8>`.
unsafe impl Sync for HugeBuf {}

impl HugeBuf {
    /// A zeroed buffer of `len` bytes.
    ///
    /// # Errors
    /// [`OutOfMemory`] when the system refuses.
    pub fn zeroed(len: usize) -> Result<HugeBuf, OutOfMemory> {
        let error = || OutOfMemory { wanted: len, in_use: bytes_in_use() };
        let ptr = system::get(len).ok_or_else(error)?;
        IN_USE.fetch_add(len, Ordering::Relaxed);
        Ok(HugeBuf { ptr, len, guarded: None })
    }

    fn guarded(len: usize, align: usize) -> Result<HugeBuf, OutOfMemory> {
        let error = || OutOfMemory { wanted: len, in_use: bytes_in_use() };
        let mapping = guarded::Mapping::new(len, align).ok_or_else(error)?;
        IN_USE.fetch_add(len, Ordering::Relaxed);
        Ok(HugeBuf { ptr: mapping.first(), len, guarded: Some(mapping) })
    }

    /// Bytes in the buffer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first byte, to read from.
    pub fn as_ptr(&self) -> *const u8 {
        self.ptr.as_ptr()
    }

    /// The first byte, to write to.
    pub fn as_mut_ptr(&mut self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// As memory that several threads write.
    pub fn shared(self) -> SharedBuf {
        SharedBuf(self)
    }

    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: `ptr` is valid for `len` initialised (zeroed) bytes.
        unsafe { std::slice::from_raw_parts(self.ptr.as_ptr(), self.len) }
    }

    /// The bytes, writable.
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as in `as_slice`, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) }
    }
}

/// A buffer that kernels of several threads read and write at once, each its own part. It gives addresses: a slice would say
/// that nobody writes meanwhile, which only those know who divide the bytes among the threads.
#[derive(Debug)]
pub struct SharedBuf(HugeBuf);

impl SharedBuf {
    /// Bytes in the buffer.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Whether the buffer has no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The first byte.
    pub fn first(&self) -> *mut u8 {
        self.0.ptr.as_ptr()
    }

    /// The bytes.
    ///
    /// # Safety
    /// No thread writes any of them while the slice is there.
    pub unsafe fn as_slice(&self) -> &[u8] {
        self.0.as_slice()
    }
}

impl Drop for HugeBuf {
    fn drop(&mut self) {
        match &self.guarded {
            Some(mapping) => mapping.give_back(),
            None => system::give_back(self.ptr, self.len),
        }
        IN_USE.fetch_sub(self.len, Ordering::Relaxed);
    }
}

/// Small buffers come from the Rust allocator everywhere; big ones too where there is no `mmap`.
mod system {
    use super::*;

    fn layout(len: usize) -> Option<Layout> {
        Layout::from_size_align(len.max(1), if len >= HUGE_FROM { HUGE_PAGE } else { LINE }).ok()
    }

    fn from_heap(len: usize) -> Option<NonNull<u8>> {
        let layout = layout(len)?;
        // SAFETY: the layout is not empty.
        NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })
    }

    fn to_heap(ptr: NonNull<u8>, len: usize) {
        if let Some(layout) = layout(len) {
            // SAFETY: `from_heap` gave this pointer for this very layout.
            unsafe { std::alloc::dealloc(ptr.as_ptr(), layout) }
        }
    }

    #[cfg(not(unix))]
    pub(super) fn get(len: usize) -> Option<NonNull<u8>> {
        from_heap(len)
    }

    #[cfg(not(unix))]
    pub(super) fn give_back(ptr: NonNull<u8>, len: usize) {
        to_heap(ptr, len)
    }

    /// Maps `len` plus one huge page and unmaps what lies outside the aligned part: the allocator would write the
    /// zeros itself, with small pages, before it could be told otherwise.
    #[cfg(unix)]
    pub(super) fn get(len: usize) -> Option<NonNull<u8>> {
        if len < HUGE_FROM {
            return from_heap(len);
        }
        let size = mapped(len)?;
        let whole = size.checked_add(HUGE_PAGE)?;
        let (access, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
        // SAFETY: an anonymous mapping at an address of the system's choice touches no existing memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), whole, access, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return None;
        }
        let start = start.cast::<u8>();
        let head = start.align_offset(HUGE_PAGE);
        // SAFETY: both ranges lie in the mapping made above and outside the part that is kept.
        unsafe {
            if head > 0 {
                libc::munmap(start.cast(), head);
            }
            let ptr = start.add(head);
            if HUGE_PAGE > head {
                libc::munmap(ptr.add(size).cast(), HUGE_PAGE - head);
            }
            // Without huge pages the buffer works too, only slower: a refusal is no error.
            #[cfg(any(target_os = "linux", target_os = "android"))]
            libc::madvise(ptr.cast(), size, libc::MADV_HUGEPAGE);
            NonNull::new(ptr)
        }
    }

    #[cfg(unix)]
    pub(super) fn give_back(ptr: NonNull<u8>, len: usize) {
        match mapped(len) {
            // SAFETY: `get` mapped exactly this range.
            Some(size) if len >= HUGE_FROM => unsafe {
                libc::munmap(ptr.as_ptr().cast(), size);
            },
            _ => to_heap(ptr, len),
        }
    }

    /// Whole huge pages, so that the last one can be a huge page too.
    #[cfg(unix)]
    fn mapped(len: usize) -> Option<usize> {
        len.checked_next_multiple_of(HUGE_PAGE)
    }
}
