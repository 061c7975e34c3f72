//! Memory that is shared with others: ours, and theirs.

use crate::abi::{DlpackManaged, DlpackVersioned};
use pyo3::buffer::PyUntypedBuffer;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;
use std::sync::Arc;
use yirage_hal::HostMemory;

/// What arrays of other libraries are aligned to: a line of the cache, and the widest vector.
const ALIGN: usize = 64;

/// Elements that we own and others may write to, so that no reference to them outlives a call.
pub(crate) struct Owned {
    at: NonNull<u8>,
    layout: Layout,
    bytes: usize,
}

// SAFETY: the memory is freed by the last owner alone, and its address never changes.
unsafe impl Send for Owned {}
// SAFETY: as for `Send`. Reads and writes at the same time are races of the program that shares the elements, as its documentation
// says; the memory stays allocated under all of them.
unsafe impl Sync for Owned {}

impl Owned {
    /// A copy of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Owned {
        let Some(owned) = Owned::zeroed(bytes.len()) else {
            let layout = Layout::from_size_align(bytes.len().max(1), ALIGN);
            handle_alloc_error(layout.unwrap_or(Layout::new::<u8>()))
        };
        // SAFETY: both are `bytes.len()` bytes long, and the new memory is nobody else's yet.
        unsafe { owned.at.as_ptr().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        owned
    }

    /// So many bytes of zeros; none where there is no memory for them.
    pub(crate) fn zeroed(bytes: usize) -> Option<Owned> {
        let layout = Layout::from_size_align(bytes.max(1), ALIGN).ok()?;
        // SAFETY: the layout has a size above 0.
        let at = NonNull::new(unsafe { alloc_zeroed(layout) })?;
        Some(Owned { at, layout, bytes })
    }

    /// Where it begins.
    pub(crate) fn address(&self) -> *mut u8 {
        self.at.as_ptr()
    }
}

impl HostMemory for Owned {
    fn bytes(&self) -> &[u8] {
        // SAFETY: `bytes` bytes are allocated and initialised at `at` for as long as `self` is.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.bytes) }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout and is freed once.
        unsafe { dealloc(self.at.as_ptr(), self.layout) }
    }
}

/// Who keeps the memory of others alive.
pub(crate) enum Keeper {
    /// A tensor taken out of a capsule, which is ours to delete.
    Plain(NonNull<DlpackManaged>),
    /// The same of the versioned structure.
    Versioned(NonNull<DlpackVersioned>),
    /// Memory of ours.
    Ours(#[expect(dead_code, reason = "held for its drop")] Arc<Owned>),
    /// A view that is released when it is dropped.
    Buffer(#[expect(dead_code, reason = "held for its drop")] PyUntypedBuffer),
}

/// Elements that another library owns.
pub(crate) struct ForeignMemory {
    at: *const u8,
    bytes: usize,
    _keeper: Keeper,
}

impl ForeignMemory {
    /// # Safety
    /// `bytes` bytes have to be readable at `at` for as long as `keeper` lives; `at` may be null where there are none.
    pub(crate) unsafe fn new(at: *const u8, bytes: usize, keeper: Keeper) -> ForeignMemory {
        ForeignMemory { at, bytes, _keeper: keeper }
    }
}

// SAFETY: the keepers' owners count references with atomics or take Python's lock where they are released: DLPack asks it
// of a deleter, and `PyUntypedBuffer` does it itself.
unsafe impl Send for ForeignMemory {}
// SAFETY: nothing is written through it; see `Owned` for writes of others.
unsafe impl Sync for ForeignMemory {}

impl HostMemory for ForeignMemory {
    fn bytes(&self) -> &[u8] {
        if self.bytes == 0 {
            return &[];
        }
        // SAFETY: `ForeignMemory::new` asks for it.
        unsafe { std::slice::from_raw_parts(self.at, self.bytes) }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        match self {
            // SAFETY: the pointer was taken out of its capsule, which was renamed, so nobody else deletes it.
            Keeper::Plain(managed) => unsafe {
                if let Some(deleter) = managed.as_ref().deleter {
                    deleter(managed.as_ptr());
                }
            },
            // SAFETY: the pointer was taken out of its capsule, which was renamed, so nobody else deletes it.
            Keeper::Versioned(managed) => unsafe {
                if let Some(deleter) = managed.as_ref().deleter {
                    deleter(managed.as_ptr());
                }
            },
            Keeper::Buffer(_) | Keeper::Ours(_) => {}
        }
    }
}
