//! The memory of one layer's keys and values, and writing to it.

use super::cell::{KvElement, QuantizedKvElement, SCALE_GROUP};
use super::{AttentionError, AttentionShape, BLOCK};
use crate::rows::Src;
use crate::simd::LANES;
use std::ops::Range;

/// One layer's blocks, somewhere in memory. Copies name the same memory.
#[derive(Clone, Copy, Debug)]
pub struct KvCacheView {
    shape: AttentionShape,
    base: *mut u8,
    blocks: usize,
}

/// Writes a token's key and value to a slot.
///
/// # Safety
/// As for [`KvCacheView::append`]; the slot exists.
pub(super) type WriteFn = unsafe fn(&KvCacheView, slot: usize, k: *const f32, v: *const f32);

// SAFETY: a Cache is an address; its unsafe users vouch for who touches what when.
unsafe impl Send for KvCacheView {}
// SAFETY: a Cache is an address; its unsafe users vouch for who touches what when.
unsafe impl Sync for KvCacheView {}

impl KvCacheView {
    /// A cache of `blocks` blocks at `base`. What is not yet written may hold anything.
    ///
    /// # Safety
    /// `blocks * shape.block_bytes()` bytes at `base` (aligned to 4, best to 64) are valid for reads and writes as long
    /// as the value and its copies are used.
    ///
    /// # Errors
    /// [`AttentionError::Shape`].
    pub unsafe fn new(shape: AttentionShape, base: *mut u8, blocks: usize) -> Result<KvCacheView, AttentionError> {
        Ok(KvCacheView { shape: shape.check()?, base, blocks })
    }

    /// Heads, widths and storage.
    pub fn shape(&self) -> &AttentionShape {
        &self.shape
    }

    /// Blocks of the layer.
    pub fn blocks(&self) -> usize {
        self.blocks
    }

    /// Address of one head of a block.
    ///
    /// # Safety
    /// The block and the head exist.
    #[inline(always)]
    pub(super) unsafe fn head(&self, block: usize, head: usize) -> *mut u8 {
        debug_assert!(block < self.blocks && head < self.shape.kv_heads);
        // SAFETY: `KvCacheView::head` is promised the block and head; `AttentionCall::check` has checked the call.
        unsafe { self.base.add((block * self.shape.kv_heads + head) * self.shape.head_bytes()) }
    }

    /// Writes keys `[token][kv_heads * k_width]` and values `[token][kv_heads * v_width]` of a range of tokens to
    /// `slots`, one for each of them (`block * 32 + offset`; a negative slot is skipped). `v` is not read with `v_in_k`.
    ///
    /// # Safety
    /// The rows of the range must be readable, and no other thread may write the same slots or read their heads' blocks
    /// at these positions meanwhile. Different threads may write different slots.
    ///
    /// # Errors
    /// [`AttentionError::Length`], [`AttentionError::Slot`]; tokens before the wrong one are written.
    pub unsafe fn append(&self, tokens: Range<usize>, k: Src, v: Src, slots: &[i32]) -> Result<(), AttentionError> {
        if slots.len() != tokens.len() {
            return Err(AttentionError::Length { what: "slots", got: slots.len(), wanted: tokens.len() });
        }
        for (token, &slot) in tokens.zip(slots) {
            let Ok(slot) = usize::try_from(slot) else { continue };
            if slot >= self.blocks * BLOCK {
                let slots = self.blocks * BLOCK;
                return Err(AttentionError::Slot { token, slot: slot as i32, slots });
            }
            // SAFETY: the slot exists, which has just been checked; `KvCacheView::append` is promised the rows.
            unsafe {
                (self.shape.kv.0.write)(self, slot, k.row(token), v.row(token));
            }
        }
        Ok(())
    }

    /// [`WriteFn`] of a storage without scales.
    ///
    /// # Safety
    /// The slot exists, which [`KvCacheView::append`] checks; otherwise as for that, of one token's rows.
    pub(super) unsafe fn write<C: KvElement>(&self, slot: usize, k: *const f32, v: *const f32) {
        let s = &self.shape;
        let (block, at) = (slot / BLOCK, slot % BLOCK);
        for head in 0..s.kv_heads {
            // SAFETY: `KvCacheView::write` is promised block and rows; all offsets lie inside the head's parts;
            // `AttentionCall::check` has checked the call.
            unsafe {
                let base = self.head(block, head);
                let tile = base.add(at / LANES * LANES * s.k_pad() * C::BYTES);
                for d in 0..s.k_pad() {
                    let x = if d < s.k_width { *k.add(head * s.k_width + d) } else { 0.0 };
                    C::put(tile, d, at % LANES, x);
                }
                if s.v_in_k {
                    continue;
                }
                let values = base.add(s.k_bytes());
                for d in 0..s.v_pad() {
                    let x = if d < s.v_width { *v.add(head * s.v_width + d) } else { 0.0 };
                    C::put(values.add(d / LANES * BLOCK * LANES * C::BYTES), at, d % LANES, x);
                }
            }
        }
    }

    /// The same for codes, block by block: widths are multiples of a block's.
    ///
    /// # Safety
    /// As for [`KvCacheView::write`].
    pub(super) unsafe fn write_blocks<C: QuantizedKvElement>(&self, slot: usize, k: *const f32, v: *const f32) {
        let s = &self.shape;
        let (block, at) = (slot / BLOCK, slot % BLOCK);
        for head in 0..s.kv_heads {
            // SAFETY: `KvCacheView::write_blocks` is promised block and rows; all offsets lie inside the head's parts;
            // `AttentionCall::check` has checked the call.
            unsafe {
                let base = self.head(block, head);
                let tile = base.add(at / LANES * LANES * s.k_width * C::BYTES);
                let scales = base.add(BLOCK * s.k_width * C::BYTES).cast::<u16>();
                for group in 0..s.k_width / SCALE_GROUP {
                    let mut x =
                        k.add(head * s.k_width + group * SCALE_GROUP).cast::<[f32; SCALE_GROUP]>().read_unaligned();
                    scales.add(group * BLOCK + at).write(C::encode(&mut x));
                    x.iter().enumerate().for_each(|(d, x)| C::put(tile, group * SCALE_GROUP + d, at % LANES, *x));
                }
                if s.v_in_k {
                    continue;
                }
                let values = base.add(s.k_bytes());
                let scales = values.add(BLOCK * s.v_width * C::BYTES).cast::<u16>();
                for group in 0..s.v_width / SCALE_GROUP {
                    let mut x =
                        v.add(head * s.v_width + group * SCALE_GROUP).cast::<[f32; SCALE_GROUP]>().read_unaligned();
                    scales.add(group * BLOCK + at).write(C::encode(&mut x));
                    for (i, x) in x.iter().enumerate() {
                        let chunk = (group * SCALE_GROUP + i) / LANES;
                        C::put(values.add(chunk * BLOCK * LANES * C::BYTES), at, i % LANES, *x);
                    }
                }
            }
        }
    }
}
