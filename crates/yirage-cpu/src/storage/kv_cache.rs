//! Cache states: the blocks of one layer.

use crate::attention::{AttentionShape, KvCacheView, KvType};
use crate::memory::HugeBuf;
use crate::shared::{CpuContext, MemoryPurpose, MemoryReservation, book};
use std::sync::Arc;
use yirage_hal::HalError;
use yirage_ir::{DType, Dims, Type};

/// One layer's cache.
pub(crate) struct CpuKvCache {
    buf: HugeBuf,
    shape: AttentionShape,
    blocks: usize,
    _booked: MemoryReservation,
}

impl CpuKvCache {
    /// The storage of a block of this type, of which `k_width` elements a head are keys.
    pub(crate) fn shape(block: &Type, k_width: u32) -> Result<AttentionShape, HalError> {
        let sizes: Vec<usize> = block.shape.iter().map(|d| d.get(&Dims::default())).collect();
        let kv = if let DType::Stored(format) = block.dtype { KvType::of(format) } else { None };
        let Some(kv) = kv else {
            let kept = KvType::ALL.map(|kv| kv.format().info().name).join(", ");
            let (what, why) = (format!("a cache of {}", block.dtype), format!("it is kept in one of {kept}"));
            return Err(HalError::Unsupported { what, why });
        };
        let [_, kv_heads, width] = sizes[..] else {
            return Err(HalError::Load(format!("state {block}: [positions, heads, width] wanted")));
        };
        let k_width = k_width as usize;
        let latent = k_width == width;
        let v_width = if latent { 1 } else { width.saturating_sub(k_width) };
        AttentionShape { heads: kv_heads, kv_heads, k_width, v_width, v_in_k: latent, kv }
            .check()
            .map_err(|e| HalError::Unsupported { what: format!("a cache of {block}"), why: e.to_string() })
    }

    pub(crate) fn new(
        shared: &Arc<CpuContext>,
        block: &Type,
        k_width: u32,
        blocks: usize,
        purpose: MemoryPurpose,
    ) -> Result<CpuKvCache, HalError> {
        let shape = CpuKvCache::shape(block, k_width)?;
        let bytes = blocks.saturating_mul(shape.block_bytes());
        let buf = shared.supply.zeroed(bytes, 4).map_err(|e| HalError::OutOfMemory {
            pool: "cache",
            wanted: bytes as u64,
            detail: e.to_string(),
        })?;
        Ok(CpuKvCache { buf, shape, blocks, _booked: book(shared, purpose, bytes as u64) })
    }

    /// How a block is stored.
    pub(crate) fn stored(&self) -> &AttentionShape {
        &self.shape
    }

    /// Blocks granted.
    pub(crate) fn blocks(&self) -> usize {
        self.blocks
    }

    /// The cache as `shape` sees it, which must be what is stored but for the query heads.
    ///
    /// # Errors
    /// A shape of other heads, widths or storage, in words.
    pub(crate) fn cache(&self, shape: AttentionShape) -> Result<KvCacheView, String> {
        let (own, v_width) = (self.shape, if shape.v_in_k { self.shape.v_width } else { shape.v_width });
        if (AttentionShape { heads: own.heads, v_width, ..shape }) != own {
            return Err(format!("blocks of {own:?} are stored"));
        }
        // SAFETY: `CpuKvCache::new` got memory for `blocks` blocks of this size, and it lives as long as `self`, which
        // whoever uses the cache keeps.
        unsafe { KvCacheView::new(shape, self.buf.as_ptr(), self.blocks) }.map_err(|e| e.to_string())
    }
}
