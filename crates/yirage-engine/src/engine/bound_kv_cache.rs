//! A layer's cache on the device.

use yirage_hal::KvCacheHandle;

/// Where keys and values, or the states, of one layer lie.
pub(super) struct BoundKvCache {
    /// What the model's graph calls it.
    pub(super) name: String,
    /// The cache group, whose block table it is read by.
    pub(super) group: usize,
    /// The stage of the model that it is of.
    pub(super) stage: usize,
    pub(super) cache: KvCacheHandle,
    /// Bytes of what is read of a block.
    pub(super) block_bytes: u64,
}
