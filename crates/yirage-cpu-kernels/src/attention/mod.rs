//! Paged KV cache and attention: the same arithmetic for decode and prefill, so a row's bits do not depend on the
//! chunk, the batch, the block table or the number of threads.
//!
//! Per (token, head): blocks of 32 positions at absolute positions with a running maximum, restarted at absolute
//! multiples of [`SPLIT`] positions; the splits are joined in ascending order. K and V are read as stored and converted
//! to f32 exactly, everything else is f32 with fused multiply-adds. Of int8 keys the codes are converted: each 32
//! elements of a key have a sum of their own, which joins the score times their scale. The scales of int8 values go into
//! the weights, once for each 32 columns. A position outside a row's range has weight 0, so a block outside is a no-op
//! of that row to the bit (unless a *written* value there is infinite or NaN).
//!
//! Use: [`AttentionPlan::cached`] or [`AttentionPlan::dense`] once per step and kind of layer; per layer [`KvCacheView::append`] for all tokens,
//! a barrier, [`run_item`] for every item by any thread, a barrier, [`combine`] for every join by any thread.
//!
//! # Layout
//! A layer is `[blocks][kv_heads][K part | V part]`. The K part has two tiles of 16 positions, `[k_width][16]`; the V
//! part has `ceil(v_width / 16)` tiles of 16 columns, `[32 positions][16]`. In bf16 two rows of a tile are interleaved:
//! `[rows / 2][16][2]`. `k_width` is padded to an even number, `v_width` to a multiple of 16, both with zeros. With
//! `v_in_k` there is no V part: the values are the first `v_width` elements of the keys. In q8_0 the tiles hold the
//! codes, and after a part's tiles come its scales in f16, `[width / 32][32 positions]`: 34 bytes for each 32 elements,
//! as the format has.
//!
//! Deliberately unknown here: sequences' texts, schedulers, who frees blocks, tensors.

mod block_rows;
mod cache;
mod cell;
mod plan;
mod run;
mod tile;

pub use cache::KvCacheView;
pub use plan::{AttentionPlan, Mask};
pub use run::{AttentionCall, combine, run_item};

use std::fmt;
use std::hash::{Hash, Hasher};
use thiserror::Error;
use yirage_ir::Format;

/// Positions of a block (page) of the cache.
pub const BLOCK: usize = 32;
/// Positions of a split: partial softmaxes start anew at its absolute multiples.
pub const SPLIT: usize = 256;
/// Most rows (tokens x query heads) an item works on together.
pub(crate) const MAX_ROWS: usize = 64;

/// How the cache stores its values.
#[derive(Clone, Copy)]
pub struct KvType(&'static KvTypeOps);

/// A format, and what reads and writes it.
struct KvTypeOps {
    format: Format,
    /// Elements that share a scale; 1 where none do.
    block: usize,
    run: run::ItemFn,
    write: cache::WriteFn,
}

impl KvTypeOps {
    const fn plain<C: cell::KvElement>(format: Format) -> KvTypeOps {
        KvTypeOps { format, block: 1, run: run::item::<C>, write: KvCacheView::write::<C> }
    }
}

// Statics, since a crate that named a constant with these functions would compile them once more.
static F32: KvTypeOps = KvTypeOps::plain::<cell::KvF32>(Format::F32);
static F16: KvTypeOps = KvTypeOps::plain::<cell::KvF16>(Format::F16);
static BF16: KvTypeOps = KvTypeOps::plain::<cell::KvBf16>(Format::BF16);
static Q8_0: KvTypeOps = KvTypeOps {
    format: Format::Q8_0,
    block: cell::SCALE_GROUP,
    run: run::item::<cell::KvQ8>,
    write: KvCacheView::write_blocks::<cell::KvQ8>,
};

impl KvType {
    /// As computed.
    pub const F32: KvType = KvType(&F32);
    /// IEEE half precision.
    pub const F16: KvType = KvType(&F16);
    /// The upper half of an f32, rounded to nearest even.
    pub const BF16: KvType = KvType(&BF16);
    /// Int8 codes with an f16 scale for each 32 elements of a head's key and of its value; their widths are multiples
    /// of 32.
    pub const Q8_0: KvType = KvType(&Q8_0);
    /// All of them.
    pub const ALL: [KvType; 4] = [KvType::F32, KvType::F16, KvType::BF16, KvType::Q8_0];

    /// That of a stored format; `None` for one that no cache is kept in.
    pub fn of(format: Format) -> Option<KvType> {
        KvType::ALL.into_iter().find(|kv| kv.0.format == format)
    }

    /// The format that a value is rounded to.
    pub fn format(self) -> Format {
        self.0.format
    }

    /// Elements that are encoded together.
    pub fn block(self) -> usize {
        self.0.block
    }

    /// Bytes of `elems` elements, whole blocks, with their scales.
    pub fn bytes(self, elems: usize) -> usize {
        self.0.format.info().row_bytes(elems)
    }
}

impl PartialEq for KvType {
    fn eq(&self, other: &KvType) -> bool {
        self.0.format == other.0.format
    }
}

impl Eq for KvType {}

impl Hash for KvType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.format.hash(state);
    }
}

impl fmt::Debug for KvType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.format.info().name)
    }
}

/// Heads and widths of a layer's attention, and how its cache stores them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttentionShape {
    /// Query heads, a multiple of `kv_heads`.
    pub heads: usize,
    /// Key and value heads.
    pub kv_heads: usize,
    /// Elements of a key, at least 1.
    pub k_width: usize,
    /// Elements of a value, at least 1.
    pub v_width: usize,
    /// Whether a value is the first `v_width` elements of its key (latent attention).
    pub v_in_k: bool,
    /// Storage.
    pub kv: KvType,
}

impl AttentionShape {
    /// The shape itself if it is sound.
    ///
    /// # Errors
    /// [`AttentionError::Shape`], [`AttentionError::Blocks`].
    pub fn check(self) -> Result<AttentionShape, AttentionError> {
        let block = self.kv.block();
        if !self.k_width.is_multiple_of(block) || (!self.v_in_k && !self.v_width.is_multiple_of(block)) {
            return Err(AttentionError::Blocks { shape: self, block });
        }
        let counts = self.kv_heads > 0 && self.heads > 0 && self.heads.is_multiple_of(self.kv_heads);
        let widths = self.k_width > 0 && self.v_width > 0 && (!self.v_in_k || self.v_width <= self.k_width);
        if counts && widths { Ok(self) } else { Err(AttentionError::Shape(self)) }
    }

    /// Query heads of a key head.
    pub(crate) fn group(&self) -> usize {
        self.heads / self.kv_heads
    }
    /// Stored elements of a key.
    pub(crate) fn k_pad(&self) -> usize {
        self.k_width.next_multiple_of(2)
    }
    /// Elements of a value in memory.
    pub(crate) fn v_pad(&self) -> usize {
        self.v_width.next_multiple_of(16)
    }
    /// Bytes of the K part of a block of one head.
    pub(crate) fn k_bytes(&self) -> usize {
        BLOCK * self.kv.bytes(self.k_pad())
    }
    /// Bytes of one head of a block.
    pub(crate) fn head_bytes(&self) -> usize {
        self.k_bytes() + if self.v_in_k { 0 } else { BLOCK * self.kv.bytes(self.v_pad()) }
    }
    /// Bytes of a block of all heads; a layer of n blocks takes n times that.
    pub fn block_bytes(&self) -> usize {
        self.kv_heads * self.head_bytes()
    }
    /// Floats of one row of a partial result: maximum, sum, weighted values.
    pub(crate) fn part_row(&self) -> usize {
        2 + self.v_pad()
    }
    /// Floats of scratch memory that each worker needs in [`run_item`].
    pub fn worker_scratch_floats(&self) -> usize {
        run::AttentionScratch::floats(self)
    }
    /// Floats of partial results that let `workers` threads share every batch well whose sequences have up to
    /// `positions` positions. Less is allowed everywhere: work is then shared in larger pieces.
    pub fn parts_floats(&self, positions: usize, workers: usize) -> usize {
        let rows = self.heads.max(MAX_ROWS) * workers;
        positions.div_ceil(SPLIT) * rows * self.part_row()
    }
}

/// What is wrong with a batch or a layer.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum AttentionError {
    /// Heads or widths do not fit together.
    #[error("attention of {0:?}: heads must be a multiple of kv_heads, widths at least 1, and values lie in keys")]
    Shape(AttentionShape),
    /// Keys or values are not whole blocks of how they are to be stored.
    #[error(
        "attention of {shape:?}: keys and values are stored in blocks of {block} elements, which their widths must be \
         multiples of; store them as bf16"
    )]
    Blocks {
        /// The shape.
        shape: AttentionShape,
        /// Elements of a block.
        block: usize,
    },
    /// Two inputs of a batch disagree in length.
    #[error("{what} has {got} entries, {wanted} wanted: one a token")]
    Length {
        /// Which input.
        what: &'static str,
        /// Its entries.
        got: usize,
        /// Tokens.
        wanted: usize,
    },
    /// A token names a sequence that has no row in the block table.
    #[error("token {token} belongs to sequence {seq}, the block table has {seqs}")]
    Seq {
        /// Token of the batch.
        token: usize,
        /// Its sequence.
        seq: i32,
        /// Rows of the table.
        seqs: usize,
    },
    /// A position is negative or past the block table.
    #[error("token {token} is at position {pos}, the block table holds positions 0 to {limit} (exclusive)")]
    Position {
        /// Token of the batch.
        token: usize,
        /// Its position.
        pos: i32,
        /// Positions of a row of the table.
        limit: usize,
    },
    /// A visible block is freed or does not exist.
    #[error("sequence {seq} needs block {index} of its table, which is {block}; the cache has blocks 0 to {blocks}")]
    Block {
        /// Sequence.
        seq: usize,
        /// Place in the table's row.
        index: usize,
        /// What stands there.
        block: i32,
        /// Blocks of the cache (exclusive).
        blocks: usize,
    },
    /// A token's slot does not exist.
    #[error("token {token} is to be written to slot {slot}, the cache has slots 0 to {slots} (exclusive)")]
    Slot {
        /// Token of the batch.
        token: usize,
        /// Its slot.
        slot: i32,
        /// Slots of the cache.
        slots: usize,
    },
    /// The tokens of one sequence do not have consecutive positions (attention without a cache only).
    #[error(
        "sequence {seq} has position {pos} where {wanted} would follow: attention without a cache takes whole runs"
    )]
    Gap {
        /// Sequence.
        seq: i32,
        /// Position found.
        pos: i32,
        /// Position wanted.
        wanted: i32,
    },
}
