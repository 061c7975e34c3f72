//! The memory of a device: buffers whose numbers mean nothing to the host.

use std::collections::BTreeMap;
use yirage_hal::driver::{BufferId, BufferSlice, DriverError};

/// The number of the first buffer. No number is given twice, so that what was given back is never taken for another.
const FIRST: u64 = 1 << 32;
/// What fresh memory is full of.
const POISON: u8 = 0xa5;

/// Allocations of a device so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct SimMemoryStats {
    /// Allocations that were granted.
    pub allocations: u64,
    /// Allocations that were given back.
    pub frees: u64,
    /// Bytes held now.
    pub bytes: u64,
}

/// The memory.
#[derive(Debug)]
pub(crate) struct SimMemory {
    total: u64,
    next: u64,
    buffers: BTreeMap<BufferId, Vec<u8>>,
    stats: SimMemoryStats,
}

impl SimMemory {
    pub(crate) fn new(total: u64) -> SimMemory {
        SimMemory { total, next: FIRST, buffers: BTreeMap::new(), stats: SimMemoryStats::default() }
    }

    pub(crate) fn stats(&self) -> SimMemoryStats {
        self.stats
    }

    /// Bytes free, and all.
    pub(crate) fn capacity(&self) -> (u64, u64) {
        (self.total - self.stats.bytes, self.total)
    }

    pub(crate) fn alloc(&mut self, bytes: u64) -> Result<BufferId, DriverError> {
        let (free, total) = self.capacity();
        if bytes > free {
            return Err(DriverError::OutOfMemory { wanted: bytes, free: Some(free), total: Some(total) });
        }
        let id = BufferId(self.next);
        self.next += 1;
        self.buffers.insert(id, vec![POISON; bytes as usize]);
        self.stats.allocations += 1;
        self.stats.bytes += bytes;
        Ok(id)
    }

    pub(crate) fn free(&mut self, id: BufferId) -> Result<(), DriverError> {
        let freed = self.buffers.remove(&id).ok_or_else(|| wild("free", id))?;
        self.stats.frees += 1;
        self.stats.bytes -= freed.len() as u64;
        Ok(())
    }

    /// Bytes of a buffer.
    pub(crate) fn read(&self, slice: BufferSlice) -> Result<&[u8], DriverError> {
        let inside = self.buffers.get(&slice.buffer).and_then(|bytes| bytes.get(range(slice)?));
        inside.ok_or_else(|| wild("read", slice))
    }

    /// The same, to write.
    pub(crate) fn write(&mut self, slice: BufferSlice) -> Result<&mut [u8], DriverError> {
        let inside = self.buffers.get_mut(&slice.buffer).and_then(|bytes| bytes.get_mut(range(slice)?));
        inside.ok_or_else(|| wild("write", slice))
    }
}

fn range(slice: BufferSlice) -> Option<std::ops::Range<usize>> {
    let from = usize::try_from(slice.offset).ok()?;
    Some(from..from.checked_add(usize::try_from(slice.bytes).ok()?)?)
}

fn wild(call: &'static str, what: impl std::fmt::Debug) -> DriverError {
    DriverError::Failed { call, why: format!("{what:?} is no memory of the device") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_beside_a_buffer_is_reached() {
        let mut memory = SimMemory::new(1000);
        let (a, b) = (memory.alloc(100).unwrap(), memory.alloc(1).unwrap());
        let at = |buffer, offset, bytes| BufferSlice { buffer, offset, bytes };
        memory.write(at(a, 0, 100)).unwrap().fill(7);
        assert_eq!(memory.read(at(a, 60, 40)).unwrap(), [7; 40]);
        let none = BufferId(0);
        for wild in [at(a, 0, 101), at(a, 100, 1), at(none, 0, 1), at(b, 1, 1), at(b, 0, u64::MAX), at(a, u64::MAX, 1)]
        {
            assert!(memory.read(wild).is_err() && memory.write(wild).is_err(), "{wild:?}");
        }
        assert_eq!(memory.read(at(b, 0, 1)).unwrap(), [POISON]);
    }

    #[test]
    fn memory_is_limited_and_comes_back() {
        let mut memory = SimMemory::new(1000);
        let a = memory.alloc(900).unwrap();
        let full = DriverError::OutOfMemory { wanted: 101, free: Some(100), total: Some(1000) };
        assert_eq!(memory.alloc(101), Err(full));
        memory.free(a).unwrap();
        assert!(memory.free(a).is_err());
        assert_ne!(memory.alloc(1000).unwrap(), a);
        assert_eq!(memory.stats(), SimMemoryStats { allocations: 2, frees: 1, bytes: 1000 });
    }
}
