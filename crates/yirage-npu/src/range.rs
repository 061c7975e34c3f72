//! Bytes of a device's memory: where they lie, and nothing of what is there.

use crate::symbols::LibraryPointer;

/// Bytes of a memory of the device, which lie in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct NpuRange {
    address: u64,
    bytes: usize,
}

impl NpuRange {
    /// So many bytes from an address on, which lie in one memory of the device.
    pub(crate) fn new(address: u64, bytes: usize) -> NpuRange {
        NpuRange { address, bytes }
    }

    /// Where it begins, as a number.
    pub(crate) fn address(self) -> u64 {
        self.address
    }

    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }

    /// Where it begins, for the libraries alone: the host reads nothing there.
    pub(crate) fn pointer(self) -> LibraryPointer {
        std::ptr::without_provenance_mut(self.address as usize)
    }

    /// What is behind so many of its bytes; none where they are not among them.
    pub(crate) fn behind(self, offset: u64) -> Option<NpuRange> {
        let left = self.bytes.checked_sub(usize::try_from(offset).ok()?)?;
        Some(NpuRange { address: self.address + offset, bytes: left })
    }

    /// Its first bytes; none where it has less.
    pub(crate) fn first(self, bytes: u64) -> Option<NpuRange> {
        let bytes = usize::try_from(bytes).ok().filter(|&bytes| bytes <= self.bytes)?;
        Some(NpuRange { bytes, ..self })
    }

    pub(crate) fn overlaps(self, other: NpuRange) -> bool {
        let end = |range: NpuRange| range.address + range.bytes as u64;
        self.address.max(other.address) < end(self).min(end(other))
    }
}
