//! Cache states: the blocks of one layer, of keys and values or of a recurrent state.

use crate::shared::{CpuContext, MemoryPurpose, MemoryReservation, RunPermit, book};
use std::ops::Range;
use std::sync::Arc;
use yirage_cpu_kernels::attention::{AttentionShape, BLOCK, KvCacheView, KvType};
use yirage_cpu_kernels::memory::SharedBuf;
use yirage_cpu_kernels::recurrent::StateBlocks;
use yirage_hal::HalError;
use yirage_ir::{DType, Dim, Dims, Type};
use yirage_plan::{KvCacheLayout, KvCacheLayoutFacts, KvCacheOrder};

/// The layout of keys and values: tiles of sixteen positions of a head's keys, and of sixteen columns of its values.
pub(crate) const KV_LAYOUT: KvCacheLayout = KvCacheLayout::named("cpu-tiles");

/// The layouts of caches that this device has.
pub(crate) fn kv_cache_layouts() -> Vec<KvCacheLayoutFacts> {
    vec![KvCacheLayoutFacts {
        layout: KV_LAYOUT,
        order: KvCacheOrder::Own,
        align: 1,
        positions: vec![BLOCK as u32],
        formats: KvType::ALL.map(KvType::format).to_vec(),
    }]
}

/// One layer's cache.
pub(crate) struct CpuKvCache {
    buf: SharedBuf,
    form: BlockForm,
    blocks: usize,
    _booked: MemoryReservation,
}

/// How a block is stored.
#[derive(Clone, Copy)]
enum BlockForm {
    /// Keys and values, in the order in which attention reads them.
    KeysAndValues(AttentionShape),
    /// The rows of a recurrent state, as they are.
    Recurrent([usize; 2]),
}

impl BlockForm {
    /// The form of a block of this type, of which `k_width` elements a head are keys.
    fn of(block: &Type, k_width: u32) -> Result<BlockForm, HalError> {
        match block.shape[..] {
            [Dim::Const(rows), Dim::Const(width)] if block.dtype == DType::F32 => {
                Ok(BlockForm::Recurrent([rows as usize, width as usize]))
            }
            _ => CpuKvCache::shape(block, k_width).map(BlockForm::KeysAndValues),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            BlockForm::KeysAndValues(shape) => shape.block_bytes(),
            BlockForm::Recurrent([rows, width]) => rows.saturating_mul(*width).saturating_mul(size_of::<f32>()),
        }
    }
}

impl CpuKvCache {
    /// The storage of a block of this type, of which `k_width` elements a head are keys.
    fn shape(block: &Type, k_width: u32) -> Result<AttentionShape, HalError> {
        let sizes: Vec<usize> = block.shape.iter().map(|d| d.get(&Dims::default())).collect();
        let kv = if let DType::Stored(format) = block.dtype { KvType::of(format) } else { None };
        let Some(kv) = kv else {
            let kept = KvType::ALL.map(|kv| kv.format().info().name).join(", ");
            let (what, why) = (format!("a cache of {}", block.dtype), format!("it is kept in one of {kept}"));
            return Err(HalError::Unsupported { what, why });
        };
        let [positions, kv_heads, width] = sizes[..] else {
            return Err(HalError::Load(format!("state {block}: [positions, heads, width] wanted")));
        };
        if positions != BLOCK {
            let why = format!("its kernels read blocks of {BLOCK} positions");
            return Err(HalError::Unsupported { what: format!("a cache of blocks of {positions} positions"), why });
        }
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
        let form = BlockForm::of(block, k_width)?;
        let bytes = blocks.saturating_mul(form.bytes());
        let buf = shared.supply.zeroed(bytes, 4).map_err(|e| HalError::OutOfMemory {
            pool: "cache",
            wanted: bytes as u64,
            detail: e.to_string(),
        })?;
        Ok(CpuKvCache { buf: buf.shared(), form, blocks, _booked: book(shared, purpose, bytes as u64) })
    }

    /// Bytes of a block of this type.
    pub(crate) fn block_bytes(block: &Type, k_width: u32) -> Result<u64, HalError> {
        Ok(BlockForm::of(block, k_width)?.bytes() as u64)
    }

    /// The storage of keys and values.
    ///
    /// # Errors
    /// In words, that there are none.
    pub(crate) fn storage(&self) -> Result<KvType, String> {
        Ok(self.keys_and_values()?.kv)
    }

    fn keys_and_values(&self) -> Result<AttentionShape, String> {
        match self.form {
            BlockForm::KeysAndValues(shape) => Ok(shape),
            BlockForm::Recurrent([rows, width]) => Err(format!("states of {rows} rows of {width} are stored")),
        }
    }

    /// The blocks of a recurrent state; none of keys and values.
    pub(crate) fn states(&self) -> Option<StateBlocks> {
        let BlockForm::Recurrent(shape) = self.form else { return None };
        // SAFETY: `CpuKvCache::new` got memory for `blocks` blocks of this size, and it lives as long as `self`, which
        // whoever uses the states keeps.
        Some(unsafe { StateBlocks::new(self.buf.first().cast(), shape, self.blocks) })
    }

    /// Where a block lies among the bytes.
    fn range_of(&self, block: u32) -> Result<Range<usize>, HalError> {
        let outside = || HalError::Step(format!("block {block} of a cache of {} blocks", self.blocks));
        let block = usize::try_from(block).ok().filter(|&block| block < self.blocks).ok_or_else(outside)?;
        Ok(block * self.form.bytes()..(block + 1) * self.form.bytes())
    }

    /// Bytes of a block in rows.
    fn row_bytes(&self) -> usize {
        match &self.form {
            BlockForm::KeysAndValues(shape) => shape.block_row_bytes(),
            BlockForm::Recurrent(_) => self.form.bytes(),
        }
    }

    /// What lies in these blocks, in rows, while no program of their device runs.
    pub(crate) fn read(&self, blocks: &[u32], _turn: &RunPermit<'_>) -> Result<Vec<u8>, HalError> {
        // SAFETY: programs write caches while they have the device's permit (`CpuContext::turn`), which the caller has.
        let all = unsafe { self.buf.as_slice() };
        let each = self.row_bytes();
        let mut contents = vec![0; blocks.len() * each];
        for (&block, rows) in blocks.iter().zip(contents.chunks_exact_mut(each.max(1))) {
            let stored = &all[self.range_of(block)?];
            match &self.form {
                BlockForm::KeysAndValues(shape) => shape.rows_of_block(stored, rows),
                BlockForm::Recurrent(_) => rows.copy_from_slice(stored),
            }
        }
        Ok(contents)
    }

    /// Writes these blocks, given in rows, while no program of their device runs.
    pub(crate) fn write(&self, blocks: &[u32], contents: &[u8], _turn: &RunPermit<'_>) -> Result<(), HalError> {
        let (each, wanted) = (self.row_bytes(), blocks.len() * self.row_bytes());
        if contents.len() != wanted {
            return Err(HalError::Step(format!("{} bytes for blocks of {wanted} bytes", contents.len())));
        }
        let mut part = vec![0; self.form.bytes()];
        for (&block, rows) in blocks.iter().zip(contents.chunks_exact(each.max(1))) {
            let range = self.range_of(block)?;
            match &self.form {
                BlockForm::KeysAndValues(shape) => shape.block_of_rows(rows, &mut part),
                BlockForm::Recurrent(_) => part.copy_from_slice(rows),
            }
            // SAFETY: `range_of` gives `part.len()` bytes inside the buffer, which `CpuKvCache::new` got for so many blocks;
            // whoever has the device's permit (`CpuContext::turn`) is alone with what its programs read and write.
            unsafe { self.buf.first().add(range.start).copy_from_nonoverlapping(part.as_ptr(), part.len()) };
        }
        Ok(())
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
        let own = self.keys_and_values()?;
        let v_width = if shape.v_in_k { own.v_width } else { shape.v_width };
        if (AttentionShape { heads: own.heads, v_width, ..shape }) != own {
            return Err(format!("blocks of {own:?} are stored"));
        }
        // SAFETY: `CpuKvCache::new` got memory for `blocks` blocks of this size, and it lives as long as `self`, which
        // whoever uses the cache keeps.
        unsafe { KvCacheView::new(shape, self.buf.first(), self.blocks) }.map_err(|e| e.to_string())
    }
}
