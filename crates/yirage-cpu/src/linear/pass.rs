//! What one kernel call works on, and how its results leave the registers.

use super::lanes::Lanes;
use crate::activation::{Meta, TOKEN_TILE};
use crate::pack::{BLOCK, PANEL_TILES, TILE_ROWS, Tile};

/// One panel of 64 rows times one token tile.
pub(crate) struct Pass {
    /// The panel: `[unit][tile]`.
    pub(crate) w: *const u8,
    /// Tokens of the tile: 1, 2, 4, 8 or 16.
    pub(crate) tokens: usize,
    /// Units along k.
    pub(crate) units: usize,
    /// Numbers of the token tile: `[32-block][token][32]`.
    pub(crate) x: *const u8,
    /// Scales and sums of the token tile (int8 only): `[32-block][token]`.
    pub(crate) metas: *const Meta,
    /// From a byte of numbers or metas to that of the blocks with outliers' second ones (int8 only).
    pub(crate) fine: usize,
    /// Bits of the blocks with outliers (int8 only): `[token][word]`.
    pub(crate) outliers: *const u64,
    /// Words a token.
    pub(crate) words: usize,
    /// Result of the panel's first row for the tile's first token.
    pub(crate) out: *mut f32,
    /// Numbers between tokens of the result.
    pub(crate) ldo: usize,
    /// Rows of the panel that exist: 1 to 64.
    pub(crate) rows: usize,
    /// Add to the result.
    pub(crate) accumulate: bool,
}

/// A kernel; it may be made for one number of tokens, or for multiples of one.
///
/// # Safety
/// All of [`Pass`] holds, `tokens` fits the kernel, and the CPU has the kernel's instruction set.
pub(crate) type PassFn = unsafe fn(&Pass);

/// A 32-block that is added a second time.
pub(crate) struct Outlier {
    /// Which unit along k.
    pub(crate) unit: usize,
    /// Which block of the unit.
    pub(crate) block: usize,
    /// Its second numbers.
    pub(crate) x: *const u8,
    /// Their scales and sums.
    pub(crate) metas: *const Meta,
    /// A bit for each token that has outliers in the block.
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // the others' second numbers are zeros
    pub(crate) tokens: u32,
}

impl Pass {
    /// The blocks with outliers in any token of the tile, ascending.
    ///
    /// # Safety
    /// As for [`PassFn`].
    #[inline(always)]
    pub(crate) unsafe fn outliers<F: Tile>(&self) -> impl Iterator<Item = Outlier> {
        let mut word = 0;
        let mut of = [0u64; TOKEN_TILE];
        let mut any = 0u64;
        std::iter::from_fn(move || {
            while any == 0 {
                if word == self.words {
                    return None;
                }
                for (token, of) in of[..self.tokens].iter_mut().enumerate() {
                    // SAFETY: each token has `words` words.
                    *of = unsafe { self.outliers.add(token * self.words + word).read_unaligned() };
                    any |= *of;
                }
                word += 1;
            }
            let bit = any.trailing_zeros();
            any &= any - 1;
            let block = (word - 1) * 64 + bit as usize;
            let at = block * self.tokens;
            Some(Outlier {
                unit: block / F::UNIT_BLOCKS,
                block: block % F::UNIT_BLOCKS,
                x: self.x.wrapping_add(self.fine + at * BLOCK),
                metas: self.metas.wrapping_byte_add(self.fine).wrapping_add(at),
                tokens: of.iter().enumerate().fold(0, |all, (token, of)| all | ((of >> bit & 1) as u32) << token),
            })
        })
    }

    /// Where a unit of one of the panel's tiles lies.
    #[inline(always)]
    pub(crate) fn unit<F: Tile>(&self, unit: usize, tile: usize) -> *const u8 {
        self.w.wrapping_add((unit * PANEL_TILES + tile) * F::UNIT_BYTES)
    }

    /// Writes 16 rows of one token; rows that do not exist are dropped.
    ///
    /// # Safety
    /// As for [`PassFn`]; the instruction set of `L`.
    #[inline(always)]
    pub(crate) unsafe fn put<L: Lanes>(&self, tile: usize, token: usize, v: L::F) {
        let row = tile * TILE_ROWS;
        let have = self.rows.saturating_sub(row);
        // SAFETY: the first `rows` places of each token are writable; whole vectors only where 16 rows exist.
        unsafe {
            let out = self.out.wrapping_add(token * self.ldo + row);
            if have >= TILE_ROWS {
                L::store(out, if self.accumulate { L::add(L::floats(out), v) } else { v });
            } else if have > 0 {
                let mut rows = [0f32; TILE_ROWS];
                L::store(rows.as_mut_ptr(), v);
                put_part(out, &rows[..have], self.accumulate);
            }
        }
    }
}

/// How far ahead of the weights in use others are fetched: 1 to 4 KiB are equally good on Zen 3.
const AHEAD: usize = 2048;

/// Asks for a 32-block's share of the unit [`AHEAD`] of this one, whether there is one or not. For kernels whose tokens
/// are so few that they wait for memory.
#[inline(always)]
pub(crate) fn fetch<L: Lanes, F: Tile>(unit: *const u8, b: usize) {
    let share = F::UNIT_BYTES / F::UNIT_BLOCKS;
    for line in (0..share).step_by(64) {
        L::fetch(unit.wrapping_add(AHEAD + b * share + line));
    }
}

/// The last rows of a matrix. Not inlined: it would be in every kernel.
///
/// # Safety
/// `out` is writable for `rows`.
#[inline(never)]
unsafe fn put_part(out: *mut f32, rows: &[f32], accumulate: bool) {
    for (i, v) in rows.iter().enumerate() {
        // SAFETY: as promised by the caller.
        unsafe { *out.add(i) = if accumulate { *out.add(i) + v } else { *v } }
    }
}
