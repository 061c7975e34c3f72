//! The sizes of a step as the host knows them: operators are told their tensors' shapes by the host, not by a block in the
//! device's memory. Of each upload of as many bytes as such a block has, a copy is kept here for as long as nothing else is
//! written to that buffer; what has none is read back.

use std::collections::HashMap;
use yirage_hal::driver::{BufferId, BufferSlice, STEP_SIZES_BYTES, sizes_of_block};
use yirage_ir::Dims;

/// Blocks of sizes that the host has uploaded.
#[derive(Default)]
pub(crate) struct StepDims(HashMap<BufferId, (u64, Dims)>);

impl StepDims {
    /// Takes note of an upload.
    pub(crate) fn uploaded(&mut self, bytes: &[u8], to: BufferSlice) {
        let block: Option<&[u8; STEP_SIZES_BYTES as usize]> = bytes.try_into().ok();
        match block {
            Some(block) => drop(self.0.insert(to.buffer, (to.offset, sizes_of_block(block)))),
            None => self.forget(to.buffer),
        }
    }

    /// Something else was written there, or the buffer is gone.
    pub(crate) fn forget(&mut self, buffer: BufferId) {
        self.0.remove(&buffer);
    }

    /// The sizes at a place, where they are known.
    pub(crate) fn at(&self, slice: BufferSlice) -> Option<Dims> {
        self.0.get(&slice.buffer).filter(|(offset, _)| *offset == slice.offset).map(|(_, dims)| *dims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_hal::driver::step_sizes;

    #[test]
    fn the_last_block_counts_until_something_else_is_written() {
        let (slice, dims) =
            (BufferSlice { buffer: BufferId(4), offset: 0, bytes: 16 }, Dims { tokens: 3, ..Dims::default() });
        let mut known = StepDims::default();
        known.uploaded(&step_sizes(&dims), slice);
        assert_eq!((known.at(slice), known.at(BufferSlice { offset: 16, ..slice })), (Some(dims), None));
        known.uploaded(&[1; 15], BufferSlice { bytes: 15, ..slice });
        assert_eq!(known.at(slice), None);
    }
}
