//! Blocks of a cache from one device to another, whatever the layouts of both and however long their blocks are.

use crate::device::Device;
use crate::error::HalError;
use crate::handle::KvCacheHandle;
use yirage_ir::{Dim, Type};

/// Blocks of a cache of a device.
#[derive(Clone, Copy)]
pub struct KvBlocks<'a> {
    /// The device.
    pub device: &'a dyn Device,
    /// Its cache.
    pub cache: &'a KvCacheHandle,
    /// The type of a block of it.
    pub block: &'a Type,
    /// Which blocks, in the order of their positions.
    pub blocks: &'a [u32],
}

impl KvBlocks<'_> {
    /// Positions of all of them, and the type of one.
    fn positions(&self) -> Result<(u64, Type), HalError> {
        let &[Dim::Const(each), heads, width] = &self.block.shape[..] else {
            return Err(HalError::Step(format!("blocks of {}: [positions, heads, width] are wanted", self.block)));
        };
        Ok((u64::from(each).saturating_mul(self.blocks.len() as u64), Type::new(self.block.dtype, [heads, width])))
    }
}

/// Copies positions, through the host, to as many positions of another cache of the same elements, heads and widths.
///
/// # Errors
/// Caches that differ in more than layout and length of a block; those of [`Device::read_kv_blocks`] and
/// [`Device::write_kv_blocks`].
pub fn copy_kv_blocks(from: KvBlocks<'_>, to: KvBlocks<'_>) -> Result<(), HalError> {
    let (given, wanted) = (from.positions()?, to.positions()?);
    if given != wanted {
        let [(given, of), (wanted, like)] = [given, wanted];
        return Err(HalError::Step(format!(
            "expected {wanted} positions of {like}, got {given} of {of}: only layouts and lengths of blocks may differ"
        )));
    }
    to.device.write_kv_blocks(to.cache, to.blocks, &from.device.read_kv_blocks(from.cache, from.blocks)?)
}
