//! What one kernel call works on, and how its results leave the registers.

use super::lanes::Lanes;
use crate::activation::{BlockOutliers, Meta};
use crate::pack::{BLOCK, TILE_ROWS, Tile};

/// One panel of 64 rows times one token tile.
pub(crate) struct Pass<'a> {
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
    /// Outliers of the token tile (int8 only): `[32-block][token]`, those of unmarked blocks not set.
    pub(crate) outliers: *const BlockOutliers,
    /// Bits of the blocks with outliers (int8 only): `[token][word]`.
    pub(crate) marks: *const u64,
    /// Words a token.
    pub(crate) words: usize,
    /// Result of the panel's first row for the tile's first token.
    pub(crate) out: *mut f32,
    /// Numbers between tokens of the result.
    pub(crate) ldo: usize,
    /// If given, token t of the tile is token `places[t]` of the result.
    pub(crate) places: Option<&'a [u32]>,
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

/// A kernel for up to [`TOGETHER`] full tiles of tokens, with the same panel: it unpacks weights once for all.
///
/// # Safety
/// As for [`PassFn`], with each.
pub(crate) type PassesFn = unsafe fn(&[Pass]);

/// Tiles of tokens that a [`PassesFn`] takes at once.
pub(crate) const TOGETHER: usize = 4;

impl Pass<'_> {
    /// The numbers and metas of a block for the tile's first token.
    #[inline(always)]
    pub(crate) fn block(&self, block: usize) -> (*const u8, *const Meta) {
        let at = block * self.tokens;
        (self.x.wrapping_add(at * BLOCK), self.metas.wrapping_add(at))
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
            let place = self.places.map_or(token, |places| places[token] as usize);
            let out = self.out.wrapping_add(place * self.ldo + row);
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

/// Asks for a 32-block's share of the unit [`Lanes::AHEAD`] of this one, whether there is one or not.
#[inline(always)]
pub(crate) fn fetch<L: Lanes, F: Tile>(unit: *const u8, b: usize) {
    let share = F::UNIT_BYTES / F::UNIT_BLOCKS;
    for line in (0..share).step_by(64) {
        L::fetch(unit.wrapping_add(L::AHEAD + b * share + line));
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
