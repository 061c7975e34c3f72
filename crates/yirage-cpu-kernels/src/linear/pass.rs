//! What one kernel call works on, and how its results leave the registers.

use super::work_items::passes;
use crate::activation::{BlockOutliers, Meta};
use crate::pack::{BLOCK, TILE_ROWS, TileFormat};
use crate::simd::Lanes;
use std::ops::Range;

/// One panel of 64 rows, or several one behind the other, times some tokens of a tile.
pub(crate) struct PanelPass<'a> {
    /// The panel: `[unit][tile]`.
    pub(crate) w: *const u8,
    /// How many panels: at most what [`Passes::panels`] says.
    #[cfg(target_arch = "x86_64")]
    pub(crate) panels: usize,
    /// Bytes from a panel to the next.
    #[cfg(target_arch = "x86_64")]
    pub(crate) next: usize,
    /// Tokens.
    pub(crate) tokens: usize,
    /// Tokens of the tile they belong to: how far a token's blocks lie apart.
    pub(crate) stride: usize,
    /// Units along k.
    pub(crate) units: usize,
    /// How many bytes ahead of the weights in use others are asked for; 0 for none.
    pub(crate) ahead: usize,
    /// Their numbers: `[32-block][token of the tile][32]`.
    pub(crate) x: *const u8,
    /// Their scales and sums (int8 only): `[32-block][token of the tile]`.
    pub(crate) metas: *const Meta,
    /// Their outliers (int8 only): `[32-block][token of the tile]`, those of unmarked blocks not set.
    pub(crate) outliers: *const BlockOutliers,
    /// Their blocks as Winograd's products read them (int8, AVX-512 and full tiles only): `[32-block][token of the tile]`.
    #[cfg(target_arch = "x86_64")]
    pub(crate) pairs: *const crate::activation::WinogradActivations,
    /// Bits of their blocks with outliers (int8 only): `[token][word]`.
    pub(crate) marks: *const u64,
    /// Words a token.
    pub(crate) words: usize,
    /// Result of the panel's first row for the first token.
    pub(crate) out: *mut f32,
    /// Numbers between tokens of the result.
    pub(crate) ldo: usize,
    /// If given, token t is token `places[t]` of the result.
    pub(crate) places: Option<&'a [u32]>,
    /// Rows that exist: of each panel 64, of the last 1 to 64.
    pub(crate) rows: usize,
}

/// A kernel; it may be made for one number of tokens, for multiples of one, or for any.
///
/// # Safety
/// All of [`PanelPass`] holds, `tokens` fits the kernel, and the CPU has the kernel's instruction set.
pub(crate) type PassFn = unsafe fn(&PanelPass);

/// The kernels for the tokens of a tile.
#[derive(Clone, Copy)]
pub(crate) struct Passes {
    /// For 1, 2, 4, 8 and 16 tokens.
    pub(crate) sizes: [PassFn; 5],
    /// From so many tokens on a kernel also takes fewer than it is for, if they are a multiple of `step`: a tile is then
    /// not cut into powers of two.
    pub(crate) from: usize,
    /// A divisor of `from`, or 1.
    pub(crate) step: usize,
    /// Most panels that the kernels take at once with fewer tokens than `from`.
    pub(crate) panels: usize,
}

impl Passes {
    /// Cuts a tile of `tokens` into the passes that take it: their tokens and kernels.
    pub(crate) fn cut(self, tokens: usize) -> impl Iterator<Item = (Range<usize>, PassFn)> {
        passes(tokens, self.from, self.step)
            .map(move |part| (part.clone(), self.sizes[part.len().next_power_of_two().ilog2() as usize]))
    }
}

/// A kernel for up to [`super::variant::MOST_TOGETHER`] full tiles of tokens, with the same panel: weights are read and unpacked once for
/// all.
///
/// # Safety
/// As for [`PassFn`], with each.
pub(crate) type PassesFn = unsafe fn(&[PanelPass]);

impl PanelPass<'_> {
    /// The numbers and metas of a block for the first token.
    #[inline(always)]
    pub(crate) fn block(&self, block: usize) -> (*const u8, *const Meta) {
        let at = block * self.stride;
        (self.x.wrapping_add(at * BLOCK), self.metas.wrapping_add(at))
    }

    /// How many bytes ahead of the byte at `at` of a panel others are asked for. Behind the panel are those that the pass
    /// takes in turns with it; what comes next is behind all of them.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn ahead_of(&self, at: usize) -> usize {
        if self.ahead > 0 && at + self.ahead >= self.next {
            self.ahead + (self.panels - 1) * self.next
        } else {
            self.ahead
        }
    }

    /// Writes 16 rows of one token; rows that do not exist are dropped.
    ///
    /// # Safety
    /// As for [`PassFn`]; the instruction set of `L`.
    #[inline(always)]
    pub(crate) unsafe fn put<L: Lanes>(&self, tile: usize, token: usize, v: L::Registers) {
        let row = tile * TILE_ROWS;
        let have = self.rows.saturating_sub(row);
        // SAFETY: the first `rows` places of each token are writable; whole vectors only where 16 rows exist.
        unsafe {
            let place = self.places.map_or(token, |places| places[token] as usize);
            let out = self.out.wrapping_add(place * self.ldo + row);
            let v = L::from_registers(v);
            if have >= TILE_ROWS {
                v.store(out);
            } else if have > 0 {
                let mut rows = [0f32; TILE_ROWS];
                v.store(rows.as_mut_ptr());
                put_part(out, &rows[..have]);
            }
        }
    }
}

/// Asks for a 32-block's share of the unit `ahead` bytes behind this one, whether there is one or not; with 0 for nothing.
#[inline(always)]
pub(crate) fn fetch<L: Lanes, F: TileFormat>(ahead: usize, unit: *const u8, b: usize) {
    if ahead == 0 {
        return;
    }
    let share = F::UNIT_BYTES / F::UNIT_BLOCKS;
    for line in (0..share).step_by(64) {
        L::fetch(unit.wrapping_add(ahead + b * share + line));
    }
}

/// The last rows of a matrix. Not inlined: it would be in every kernel.
///
/// # Safety
/// `out` is writable for `rows`.
#[inline(never)]
unsafe fn put_part(out: *mut f32, rows: &[f32]) {
    // SAFETY: what `put_part` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe { out.copy_from_nonoverlapping(rows.as_ptr(), rows.len()) }
}
