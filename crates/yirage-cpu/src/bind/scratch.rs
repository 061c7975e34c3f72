//! Scratch memory, handed out when a plan is loaded.

use super::arena_slice::ArenaSlice;
use super::run::CpuRunContext;
use yirage_cpu_kernels::memory::{OutOfMemory, Supply};
use yirage_hal::HalError;

/// Hands out scratch memory: kernels of one phase get disjoint bytes, phases share them.
pub(crate) struct ScratchSizes {
    supply: Supply,
    used: usize,
    peak: usize,
}

/// Bytes of a program's scratch memory, at a multiple of 64.
#[derive(Clone)]
pub(crate) struct ScratchBuffer {
    spot: ArenaSlice,
    bytes: usize,
}

impl ScratchSizes {
    /// With nothing handed out.
    pub(super) fn new(supply: Supply) -> ScratchSizes {
        ScratchSizes { supply, used: 0, peak: 0 }
    }

    /// `bytes` more bytes. A sum that is no number is more than any memory has.
    ///
    /// # Errors
    /// A guarded device that has no memory left.
    pub(crate) fn take(&mut self, bytes: usize) -> Result<ScratchBuffer, HalError> {
        let offset = self.used;
        self.used = offset.saturating_add(bytes.checked_next_multiple_of(64).unwrap_or(usize::MAX));
        self.peak = self.peak.max(self.used);
        let refused =
            |e: OutOfMemory| HalError::OutOfMemory { pool: "arena", wanted: bytes as u64, detail: e.to_string() };
        Ok(ScratchBuffer { spot: ArenaSlice::new(self.supply, offset, bytes, 64).map_err(refused)?, bytes })
    }

    /// A phase begins: what the one before had is free.
    pub(crate) fn next_phase(&mut self) {
        self.used = 0;
    }

    /// Bytes that a program needs.
    pub(crate) fn peak(&self) -> usize {
        self.peak
    }
}

impl ScratchBuffer {
    /// All of it, as floats.
    ///
    /// # Safety
    /// Nobody else uses it meanwhile.
    #[allow(clippy::mut_from_ref)] // scratch is shared by address, its parts are not
    pub(crate) unsafe fn floats<'a>(&self, run: &'a CpuRunContext<'_>) -> &'a mut [f32] {
        // SAFETY: `ScratchBuffer::at` checks that the bytes exist; they begin at a multiple of 64, and any bits are floats.
        unsafe { std::slice::from_raw_parts_mut(self.at(run, 0).cast(), self.bytes / size_of::<f32>()) }
    }

    /// The address of its byte `at`.
    ///
    /// # Panics
    /// If it has no such byte, nor ends there.
    pub(crate) fn at(&self, run: &CpuRunContext<'_>, at: usize) -> *mut u8 {
        assert!(at <= self.bytes, "byte {at} of {} of scratch memory", self.bytes);
        // Inside: the program's memory is as large as the peak of all that was taken.
        self.spot.first(run.scratch).wrapping_add(at)
    }
}
