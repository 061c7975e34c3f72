//! Cache states in a device's memory.

use super::buffer::Buffer;
use super::contract::Driver;
use super::memory::BufferSlice;
use crate::error::HalError;
use crate::record::{HostMemory, Record};
use std::sync::Arc;
use std::time::Duration;
use yirage_ir::{Dims, Type};
use yirage_plan::{KvCacheLayoutFacts, Target};

/// How long copies of blocks may take before their device counts as hanging.
const HANG_AFTER: Duration = Duration::from_secs(120);

/// How the blocks of a cache lie.
pub(super) struct KvBlockForm {
    pub(super) block: Type,
    /// None of recurrent states, which lie row after row.
    layout: Option<KvCacheLayoutFacts>,
}

impl KvBlockForm {
    /// Of blocks of this type, in the layout that the target wants most for them.
    pub(super) fn new(target: &Target, block: &Type) -> Result<KvBlockForm, HalError> {
        if target.kv_cache_layout_of(block).is_none() {
            let layouts: Vec<&str> = target.kv_cache_layouts.iter().map(|facts| facts.layout.name()).collect();
            return Err(HalError::Unsupported {
                what: format!("a cache of blocks of {block}"),
                why: format!("of the layouts of {} ({}) none holds them", target.describe(), layouts.join(", ")),
            });
        }
        Ok(KvBlockForm { block: block.clone(), layout: target.kv_cache_layout(block).cloned() })
    }

    /// Bytes of a block.
    pub(super) fn bytes(&self) -> Result<u64, HalError> {
        let plain = Some(self.block.bytes(&Dims::default()) as u64);
        let bytes = self.layout.as_ref().map_or(plain, |layout| layout.block_bytes(&self.block));
        bytes.ok_or_else(|| HalError::Load(format!("the layout of a cache of {} says no bytes of a block", self.block)))
    }

    /// Blocks as they lie, in rows.
    fn to_rows(&self, stored: Vec<u8>) -> Result<Vec<u8>, HalError> {
        let Some(layout) = &self.layout else { return Ok(stored) };
        layout.to_rows(&self.block, &stored).ok_or_else(|| self.no_blocks(stored.len()))
    }

    /// Blocks in rows, as they lie.
    fn blocks_of_rows(&self, rows: &[u8]) -> Result<Vec<u8>, HalError> {
        let Some(layout) = &self.layout else { return Ok(rows.to_vec()) };
        layout.from_rows(&self.block, rows).ok_or_else(|| self.no_blocks(rows.len()))
    }

    fn no_blocks(&self, bytes: usize) -> HalError {
        HalError::Step(format!("{bytes} bytes are no whole blocks of {}", self.block))
    }
}

/// A cache state in a device's memory.
pub(super) struct DeviceKvCache<D: Driver> {
    pub(super) form: KvBlockForm,
    pub(super) blocks: u32,
    pub(super) buffer: Buffer<D>,
}

impl<D: Driver> DeviceKvCache<D> {
    /// Where a block lies.
    fn slice_of(&self, block: u32) -> Result<BufferSlice, HalError> {
        let bytes = self.form.bytes()?;
        let outside = || HalError::Step(format!("block {block} of a cache of {} blocks", self.blocks));
        self.buffer.slice().part(u64::from(block) * bytes, bytes).ok_or_else(outside)
    }

    /// What lies in these blocks, in rows, behind everything that was submitted.
    pub(super) fn read(&self, blocks: &[u32]) -> Result<Vec<u8>, HalError> {
        let driver = self.buffer.driver();
        let begin = |&block: &u32| Ok(driver.download(self.slice_of(block)?)?);
        let downloads = blocks.iter().map(begin).collect::<Result<Vec<_>, HalError>>()?;
        driver.wait(driver.signal()?, HANG_AFTER)?;
        let mut contents = Vec::new();
        downloads.into_iter().for_each(|download| contents.extend_from_slice(download.take().bytes()));
        self.form.to_rows(contents)
    }

    /// Writes these blocks, given in rows, behind everything that was submitted.
    pub(super) fn write(&self, blocks: &[u32], contents: &[u8]) -> Result<(), HalError> {
        let wanted = self.form.block.bytes(&Dims::default()).saturating_mul(blocks.len());
        if wanted != contents.len() {
            return Err(HalError::Step(format!("{} bytes for blocks of {wanted} bytes", contents.len())));
        }
        let (each, contents) = (self.form.bytes()?, self.form.blocks_of_rows(contents)?);
        let driver = self.buffer.driver();
        for (block, part) in blocks.iter().zip(contents.chunks(each.max(1) as usize)) {
            driver.upload(Arc::new(Record::of(part)), self.slice_of(*block)?)?;
        }
        Ok(driver.wait(driver.signal()?, HANG_AFTER)?)
    }
}
