//! Memory that was given out, by its numbers.

use crate::range::NpuRange;
use crate::runtime::{AcceleratorRuntime, NpuMemory};
use crate::status::refused;
use std::collections::HashMap;
use std::sync::Arc;
use yirage_hal::driver::{BufferId, BufferSlice, DriverError};

/// The buffers of a device.
#[derive(Default)]
pub(crate) struct NpuBuffers {
    all: HashMap<BufferId, NpuMemory>,
    last: u64,
}

impl NpuBuffers {
    /// Takes memory.
    pub(crate) fn alloc(&mut self, runtime: &Arc<dyn AcceleratorRuntime>, bytes: u64) -> Result<BufferId, DriverError> {
        let memory = NpuMemory::new(runtime, bytes)?;
        self.last += 1;
        self.all.insert(BufferId(self.last), memory);
        Ok(BufferId(self.last))
    }

    /// The memory of a buffer that nobody names any more.
    pub(crate) fn remove(&mut self, buffer: BufferId) -> Option<NpuMemory> {
        self.all.remove(&buffer)
    }

    /// Where bytes of a buffer lie.
    pub(crate) fn range(&self, call: &'static str, slice: BufferSlice) -> Result<NpuRange, DriverError> {
        let BufferSlice { buffer, offset, bytes } = slice;
        let memory = self.all.get(&buffer).ok_or_else(|| refused(call, format!("there is no buffer {}", buffer.0)))?;
        let outside = || refused(call, format!("{bytes} bytes at {offset} are not all in buffer {}", buffer.0));
        memory.range(offset, bytes).ok_or_else(outside)
    }
}
