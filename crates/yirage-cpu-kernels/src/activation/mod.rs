//! Activations in the order the matrix kernels read them: rounded or quantised once, used by every weight matrix that
//! shares the input.
//!
//! Tokens are cut into tiles of 16 and a last one of the rest. A tile is `[32-block][token][32 numbers]`; int8 has a
//! second region `[32-block][token]` of scales and sums. The number of blocks is even: k is padded with zeros to 64, the
//! largest unit of a weight format whose file blocks are shorter. Token t of the batch depends on row t alone.
//!
//! Int8 has a third region `[32-block][token]` of outliers (`yirage_ir::format::q8a` says what they are), and a bit for each
//! block of a token that has some; the third region of other blocks is never touched. A fourth region `[32-block][token]`
//! holds `WinogradActivations` of full tiles, with AVX-512 and for kernels that read them; else it is never touched.
//!
//! Knows nothing of weight formats: int8 sums are stored so that a kernel gets any format's offset by a shift.

#[cfg(target_arch = "aarch64")]
mod neon;
mod outliers;
#[cfg(target_arch = "x86_64")]
mod pairs;
mod scalar;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::isa::Isa;
use crate::memory::prefetch;
use crate::pack::BLOCK;
pub(crate) use outliers::BlockOutliers;
#[cfg(target_arch = "x86_64")]
pub use pairs::WinogradActivations;
use std::ops::Range;
use yirage_ir::ActivationFormat;
use yirage_plan::ActivationFormatFacts;

/// Bytes of a block as Winograd's products read it.
const PAIRS: usize = 48;

/// int8 activations as they lie here. A block takes, rounded up: codes, scale and sums, outliers, pairs, and its share of the
/// bits.
pub const Q8A: ActivationFormatFacts = ActivationFormatFacts {
    format: ActivationFormat::Q8A,
    block_bytes: (BLOCK + size_of::<Meta>() + size_of::<BlockOutliers>() + PAIRS + 4) as u32,
    row_multiple: 64,
};

/// Most tokens of a tile.
pub const TOKEN_TILE: usize = 16;

/// How the numbers of activations are stored for a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ActivationEncoding {
    /// int8 in blocks of 32, and outliers: the contents of `ActivationFormat::Q8A`.
    Q8,
    /// f32 rounded to bf16 (nearest even), stored as bf16: operands of the BF16 dot product.
    Bf16,
    /// f32 rounded to bf16, stored as f32, for CPUs without that instruction.
    RoundedF32,
    /// f32 as it is.
    F32,
}

impl ActivationEncoding {
    /// Bytes of 32 numbers, without scales.
    pub(crate) fn block_bytes(self) -> usize {
        match self {
            ActivationEncoding::Q8 => BLOCK,
            ActivationEncoding::Bf16 => 2 * BLOCK,
            ActivationEncoding::RoundedF32 | ActivationEncoding::F32 => 4 * BLOCK,
        }
    }
}

/// Scale and sums of a 32-block of int8 activations.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Meta {
    /// Scale; NaN if the block held NaN or an infinity.
    pub scale: f32,
    /// Scale times the sum of the codes.
    pub scaled_sum: f32,
    /// Minus the sum of the codes.
    pub minus_sum: i32,
    /// Minus the sum of the first 16 codes.
    pub minus_first: i32,
}

/// A tile of tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenTile {
    /// First token.
    pub first: usize,
    /// Tokens: 16, in the last tile 1 to 16.
    pub tokens: usize,
}

/// Where the parts of a token lie, in bytes.
pub(crate) struct Offsets {
    /// The numbers of its first block.
    pub(crate) numbers: usize,
    /// The [`Meta`] of its first block (int8 only).
    pub(crate) metas: usize,
    /// The [`BlockOutliers`] of its first block (int8 only).
    pub(crate) outliers: usize,
    /// Its first block as Winograd's products read it (int8 only).
    #[cfg(target_arch = "x86_64")]
    pub(crate) pairs: usize,
    /// The bits (int8 only).
    pub(crate) marks: usize,
    /// 64-bit words of bits a token; 0 unless int8.
    pub(crate) words: usize,
}

/// Where the activations of `tokens` rows of `k` numbers lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActivationBufferLayout {
    form: ActivationEncoding,
    tokens: usize,
    k: usize,
    pairs: bool,
}

impl ActivationBufferLayout {
    /// The layout of `tokens` rows of `k` numbers.
    pub fn new(form: ActivationEncoding, tokens: usize, k: usize) -> ActivationBufferLayout {
        ActivationBufferLayout { form, tokens, k, pairs: false }
    }

    /// This one with or without pairs for Winograd's products, for which there is room in any case.
    pub fn with_pairs(self, pairs: bool) -> ActivationBufferLayout {
        ActivationBufferLayout { pairs, ..self }
    }

    /// Whether it is stored with pairs, where the instruction set has kernels that read them.
    pub(crate) fn has_pairs(&self) -> bool {
        self.pairs
    }

    /// How the numbers are stored.
    pub fn form(&self) -> ActivationEncoding {
        self.form
    }

    /// Rows.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Numbers of a row, without padding.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Bytes of the whole; 64-byte alignment is best, any works.
    pub fn bytes(&self) -> usize {
        match self.form {
            ActivationEncoding::Q8 => self.mark_offset() + self.tokens * self.mark_words() * size_of::<u64>(),
            form => self.tokens * self.blocks() * form.block_bytes(),
        }
    }

    /// Blocks of a row, with padding.
    pub(crate) fn blocks(&self) -> usize {
        2 * self.k.div_ceil(2 * BLOCK)
    }

    /// Offset of the [`Meta`]s.
    fn meta_offset(&self) -> usize {
        self.tokens * self.blocks() * self.form.block_bytes()
    }

    /// Offset of the [`BlockOutliers`].
    fn outlier_offset(&self) -> usize {
        self.meta_offset() + self.tokens * self.blocks() * size_of::<Meta>()
    }

    /// Offset of the blocks as Winograd's products read them.
    fn pairs_offset(&self) -> usize {
        self.outlier_offset() + self.tokens * self.blocks() * size_of::<BlockOutliers>()
    }

    /// The bytes of the blocks as Winograd's products read them.
    pub fn pairs_range(&self) -> Range<usize> {
        self.pairs_offset()..self.mark_offset()
    }

    /// Offset of the bits.
    fn mark_offset(&self) -> usize {
        self.pairs_offset() + self.tokens * self.blocks() * PAIRS
    }

    /// 64-bit words that hold a bit for each block of a token.
    fn mark_words(&self) -> usize {
        self.blocks().div_ceil(u64::BITS as usize)
    }

    /// Where the parts of token `token` of a tile lie.
    pub(crate) fn offsets(&self, tile: TokenTile, token: usize) -> Offsets {
        let blocks = tile.first * self.blocks() + token;
        let numbers = blocks * self.form.block_bytes();
        let metas = self.meta_offset() + blocks * size_of::<Meta>();
        let outliers = self.outlier_offset() + blocks * size_of::<BlockOutliers>();
        let words = if self.form == ActivationEncoding::Q8 { self.mark_words() } else { 0 };
        let marks = self.mark_offset() + (tile.first + token) * words * size_of::<u64>();
        Offsets {
            numbers,
            metas,
            outliers,
            #[cfg(target_arch = "x86_64")]
            pairs: self.pairs_offset() + blocks * PAIRS,
            marks,
            words,
        }
    }

    /// A tile by its number.
    pub fn tile(&self, number: usize) -> TokenTile {
        let first = number * TOKEN_TILE;
        TokenTile { first, tokens: TOKEN_TILE.min(self.tokens - first) }
    }

    /// Offsets of block 0 of a token, and from block to block, in numbers of blocks (the same for all regions).
    fn block_offset(&self, token: usize) -> (usize, usize) {
        let tile = self.tile(token / TOKEN_TILE);
        (tile.first * self.blocks() + token - tile.first, tile.tokens)
    }

    /// Stores the rows `range` of `x` (row t at `x + t * ldx`). Different calls may store different tokens at the
    /// same time; every token must be stored before a kernel runs.
    ///
    /// # Panics
    /// When `range` exceeds the tokens of the layout.
    ///
    /// # Safety
    /// `x` is readable for `k` numbers in each row of `range`; `out` is writable for [`ActivationBufferLayout::bytes`], and nobody
    /// else uses the bytes of these tokens; the CPU has `isa`.
    pub unsafe fn store(&self, isa: Isa, x: *const f32, ldx: usize, range: Range<usize>, out: *mut u8) {
        assert!(range.end <= self.tokens, "tokens {range:?} of {}", self.tokens);
        let mut padded = [0f32; BLOCK];
        for token in range.clone() {
            let (first, step) = self.block_offset(token);
            for b in 0..self.blocks() {
                let (at, have) = (first + b * step, self.k.saturating_sub(b * BLOCK));
                // SAFETY: `ActivationBufferLayout::store` is promised the row and the room; a part of a block is read from `padded`.
                unsafe {
                    let mut src = x.wrapping_add(token * ldx + b * BLOCK);
                    if have < BLOCK {
                        padded.fill(0.0);
                        std::ptr::copy_nonoverlapping(src, padded.as_mut_ptr(), have);
                        src = padded.as_ptr();
                    }
                    self.store_block(isa, src, at, out);
                }
            }
            if self.form == ActivationEncoding::Q8 {
                // SAFETY: the same row and bytes; the blocks are stored.
                unsafe { self.store_outliers(isa, x.wrapping_add(token * ldx), token, out) };
            }
        }
        // SAFETY: the same bytes; the blocks are stored.
        #[cfg(target_arch = "x86_64")]
        unsafe {
            self.store_pairs(isa, range, out);
        }
    }

    /// Copies the one token of `from`, which has this form and width, to be token `token` of this layout.
    ///
    /// # Safety
    /// `from` holds a layout of one token that [`ActivationBufferLayout::store`] wrote; `out` as for [`ActivationBufferLayout::store`].
    #[cfg_attr(not(target_arch = "x86_64"), allow(unused_variables))] // other levels store no pairs
    pub unsafe fn copy_token(&self, isa: Isa, from: *const u8, token: usize, out: *mut u8) {
        let one = ActivationBufferLayout { tokens: 1, ..*self };
        let (first, step) = self.block_offset(token);
        // SAFETY: blocks, metas and bits of a token lie in its layout, here and there.
        unsafe {
            let copy = |there: usize, here: usize, bytes: usize| {
                for b in 0..self.blocks() {
                    let to = out.add(here + (first + b * step) * bytes);
                    std::ptr::copy_nonoverlapping(from.add(there + b * bytes), to, bytes);
                }
            };
            copy(0, 0, self.form.block_bytes());
            if self.form == ActivationEncoding::Q8 {
                copy(one.meta_offset(), self.meta_offset(), size_of::<Meta>());
                copy(one.outlier_offset(), self.outlier_offset(), size_of::<BlockOutliers>());
                let bytes = self.mark_words() * size_of::<u64>();
                let to = out.add(self.mark_offset() + token * bytes);
                std::ptr::copy_nonoverlapping(from.add(one.mark_offset()), to, bytes);
            }
            #[cfg(target_arch = "x86_64")]
            self.store_pairs(isa, token..token + 1, out);
        }
    }

    /// Asks for what every product reads of what [`ActivationBufferLayout::store`] left in `stored`: all but outliers.
    pub fn fetch(&self, stored: *const u8) {
        let bytes = if self.form == ActivationEncoding::Q8 { self.outlier_offset() } else { self.bytes() };
        prefetch(stored, bytes);
    }

    /// # Safety
    /// As [`ActivationBufferLayout::store`], for the 32 numbers at `src`.
    #[inline]
    unsafe fn store_block(&self, isa: Isa, src: *const f32, at: usize, out: *mut u8) {
        // SAFETY: `at` is a block of this layout, and the caller gives the rest.
        unsafe {
            let dst = out.add(at * self.form.block_bytes());
            match self.form {
                ActivationEncoding::Q8 => {
                    let codes = dst.cast::<[i8; BLOCK]>();
                    let meta = out.add(self.meta_offset()).cast::<Meta>().add(at);
                    match isa.vectors() {
                        #[cfg(target_arch = "x86_64")]
                        Isa::Avx2 | Isa::Avx512 => x86::quantize(src, codes, meta),
                        #[cfg(target_arch = "aarch64")]
                        Isa::Neon => neon::quantize(src, codes, meta),
                        _ => scalar::quantize(src, codes, meta),
                    }
                }
                ActivationEncoding::Bf16 => scalar::round(src, dst.cast()),
                ActivationEncoding::RoundedF32 => scalar::round_wide(src, dst.cast()),
                ActivationEncoding::F32 => std::ptr::copy_nonoverlapping(src, dst.cast(), BLOCK),
            }
        }
    }

    /// Scale, codes and outliers of a 32-block of a token as [`ActivationBufferLayout::store`] left them in `stored`, for comparing with
    /// the op's definition. `None` if the layout is not int8, or has no such block.
    pub fn quantized<'a>(&self, stored: &'a [u8], token: usize, block: usize) -> Option<(f32, &'a [u8], [f32; BLOCK])> {
        if self.form != ActivationEncoding::Q8 || token >= self.tokens || block >= self.blocks() {
            return None;
        }
        let (first, step) = self.block_offset(token);
        let at = first + block * step;
        let scale = stored.get(self.meta_offset() + at * size_of::<Meta>()..)?.first_chunk::<4>()?;
        let codes = stored.get(at * BLOCK..(at + 1) * BLOCK)?;
        Some((f32::from_ne_bytes(*scale), codes, self.outliers(stored, token, block)?))
    }
}
