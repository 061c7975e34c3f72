//! Memory that a program hands out when it is loaded.

use std::sync::Arc;
use yirage_cpu_kernels::memory::{OutOfMemory, SharedBuf, Supply};

/// Bytes of a program's arena or scratch memory; on a guarded device, memory of their own.
#[derive(Clone)]
pub(crate) struct ArenaSlice {
    offset: usize,
    own: Option<Arc<SharedBuf>>,
}

impl ArenaSlice {
    /// `bytes` bytes from `offset` on.
    ///
    /// # Errors
    /// A guarded device that has no memory left.
    pub(super) fn new(supply: Supply, offset: usize, bytes: usize, align: usize) -> Result<ArenaSlice, OutOfMemory> {
        let own = match supply {
            Supply::Plain => None,
            Supply::Guarded => Some(Arc::new(supply.zeroed(bytes, align)?.shared())),
        };
        Ok(ArenaSlice { offset, own })
    }

    /// The first byte, in a memory that holds all spots which were handed out of it.
    pub(crate) fn first(&self, memory: &SharedBuf) -> *mut u8 {
        match &self.own {
            None => memory.first().wrapping_add(self.offset),
            Some(own) => own.first(),
        }
    }
}

/// Bytes of the memory that plain spots lie in: none where each has its own.
pub(crate) fn shared_bytes(supply: Supply, bytes: usize) -> usize {
    match supply {
        Supply::Plain => bytes,
        Supply::Guarded => 0,
    }
}
