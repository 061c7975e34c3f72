//! The memory of a device: allocations at addresses that mean nothing to the host.

use std::collections::BTreeMap;
use yirage_hal::driver::{Address, DriverError};

/// Where the first allocation lies. Addresses below are never valid.
const FIRST: u64 = 1 << 32;
/// What addresses of allocations are multiples of. Between two of them lies at least so much that belongs to nobody.
const ALIGN: u64 = 256;
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
    allocations: BTreeMap<u64, Vec<u8>>,
    stats: SimMemoryStats,
}

impl SimMemory {
    pub(crate) fn new(total: u64) -> SimMemory {
        SimMemory { total, next: FIRST, allocations: BTreeMap::new(), stats: SimMemoryStats::default() }
    }

    pub(crate) fn stats(&self) -> SimMemoryStats {
        self.stats
    }

    /// Bytes free, and all.
    pub(crate) fn capacity(&self) -> (u64, u64) {
        (self.total - self.stats.bytes, self.total)
    }

    pub(crate) fn alloc(&mut self, bytes: u64) -> Result<Address, DriverError> {
        let (free, total) = self.capacity();
        if bytes > free {
            return Err(DriverError::OutOfMemory { wanted: bytes, free, total });
        }
        let at = self.next;
        self.next += bytes.next_multiple_of(ALIGN) + ALIGN;
        self.allocations.insert(at, vec![POISON; bytes as usize]);
        self.stats.allocations += 1;
        self.stats.bytes += bytes;
        Ok(Address(at))
    }

    pub(crate) fn free(&mut self, at: Address) -> Result<(), DriverError> {
        let freed = self.allocations.remove(&at.0).ok_or_else(|| wild("free", at, 0))?;
        self.stats.frees += 1;
        self.stats.bytes -= freed.len() as u64;
        Ok(())
    }

    /// Bytes of one allocation.
    pub(crate) fn read(&self, at: Address, bytes: u64) -> Result<&[u8], DriverError> {
        let found = self.allocations.range(..=at.0).next_back();
        let inside = found.and_then(|(first, held)| {
            let from = usize::try_from(at.0 - first).ok()?;
            held.get(from..from.checked_add(usize::try_from(bytes).ok()?)?)
        });
        inside.ok_or_else(|| wild("read", at, bytes))
    }

    /// The same, to write.
    pub(crate) fn write(&mut self, at: Address, bytes: u64) -> Result<&mut [u8], DriverError> {
        let found = self.allocations.range_mut(..=at.0).next_back();
        let inside = found.and_then(|(first, held)| {
            let from = usize::try_from(at.0 - first).ok()?;
            held.get_mut(from..from.checked_add(usize::try_from(bytes).ok()?)?)
        });
        inside.ok_or_else(|| wild("write", at, bytes))
    }
}

fn wild(call: &'static str, at: Address, bytes: u64) -> DriverError {
    DriverError::Failed { call, why: format!("{bytes} bytes at {:#x} are no memory of one allocation", at.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_beside_an_allocation_is_reached() {
        let mut memory = SimMemory::new(1000);
        let (a, b) = (memory.alloc(100).unwrap(), memory.alloc(1).unwrap());
        memory.write(a, 100).unwrap().fill(7);
        assert_eq!(memory.read(a.offset(60), 40).unwrap(), [7; 40]);
        for (at, bytes) in
            [(a, 101), (a.offset(100), 1), (Address(0), 1), (b.offset(1), 1), (b, u64::MAX), (a.offset(u64::MAX), 1)]
        {
            assert!(memory.read(at, bytes).is_err() && memory.write(at, bytes).is_err(), "{at:?} {bytes}");
        }
        assert_eq!(memory.read(b, 1).unwrap(), [POISON]);
    }

    #[test]
    fn memory_is_limited_and_comes_back() {
        let mut memory = SimMemory::new(1000);
        let a = memory.alloc(900).unwrap();
        assert_eq!(memory.alloc(101), Err(DriverError::OutOfMemory { wanted: 101, free: 100, total: 1000 }));
        memory.free(a).unwrap();
        assert!(memory.free(a).is_err());
        memory.alloc(1000).unwrap();
        assert_eq!(memory.stats(), SimMemoryStats { allocations: 2, frees: 1, bytes: 1000 });
    }
}
