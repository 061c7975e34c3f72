//! Cache states in a device's memory.

use super::buffer::Buffer;
use super::contract::Driver;
use super::memory::BufferSlice;
use crate::error::HalError;
use crate::record::{HostMemory, Record};
use std::sync::Arc;
use std::time::Duration;
use yirage_ir::Type;

/// How long copies of blocks may take before their device counts as hanging.
const HANG_AFTER: Duration = Duration::from_secs(120);

/// A cache state in a device's memory.
pub(super) struct DeviceKvCache<D: Driver> {
    pub(super) block: Type,
    pub(super) blocks: u32,
    pub(super) buffer: Buffer<D>,
}

impl<D: Driver> DeviceKvCache<D> {
    /// Where a block lies.
    fn slice_of(&self, block: u32) -> Result<BufferSlice, HalError> {
        let bytes = self.block_bytes();
        let outside = || HalError::Step(format!("block {block} of a cache of {} blocks", self.blocks));
        self.buffer.slice().part(u64::from(block) * bytes, bytes).ok_or_else(outside)
    }

    fn block_bytes(&self) -> u64 {
        self.buffer.bytes().checked_div(u64::from(self.blocks)).unwrap_or_default()
    }

    /// What lies in these blocks, behind everything that was submitted.
    pub(super) fn read(&self, blocks: &[u32]) -> Result<Vec<u8>, HalError> {
        let driver = self.buffer.driver();
        let begin = |&block: &u32| Ok(driver.download(self.slice_of(block)?)?);
        let downloads = blocks.iter().map(begin).collect::<Result<Vec<_>, HalError>>()?;
        driver.wait(driver.signal()?, HANG_AFTER)?;
        let mut contents = Vec::new();
        downloads.into_iter().for_each(|download| contents.extend_from_slice(download.take().bytes()));
        Ok(contents)
    }

    /// Writes these blocks, behind everything that was submitted.
    pub(super) fn write(&self, blocks: &[u32], contents: &[u8]) -> Result<(), HalError> {
        let each = self.block_bytes();
        let wanted = each.saturating_mul(blocks.len() as u64);
        if wanted != contents.len() as u64 {
            return Err(HalError::Step(format!("{} bytes for blocks of {wanted} bytes", contents.len())));
        }
        let driver = self.buffer.driver();
        for (block, part) in blocks.iter().zip(contents.chunks(each.max(1) as usize)) {
            driver.upload(Arc::new(Record::of(part)), self.slice_of(*block)?)?;
        }
        Ok(driver.wait(driver.signal()?, HANG_AFTER)?)
    }
}
