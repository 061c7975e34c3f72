//! What outliers add to a panel's sums: columns of weights, each decoded once for all tokens. A unit's follow its last
//! block, when its codes and scales are still at hand; the loop over its blocks has no branch that depends on data.

use super::pass::PanelPass;
use super::variant::MOST_TOGETHER;
use crate::activation::{BlockOutliers, TOKEN_TILE};
use crate::memory::prefetch;
use crate::pack::{BLOCK, PANEL_TILES, QuantizedTileFormat, UnitScales, decode_column};
use crate::simd::Lanes;

/// Tokens at once: a bit each.
const MOST: usize = MOST_TOGETHER * TOKEN_TILE;

/// A panel's sums for a tile of tokens, or for several full ones.
pub(super) trait OutlierAccumulator<L: Lanes> {
    /// `sum = fma(w, x, sum)` for the rows of a tile and a token, counted through all tiles of tokens.
    ///
    /// # Safety
    /// Both exist; the instruction set of `L`.
    unsafe fn add(&mut self, tile: usize, token: usize, w: L, x: f32);
}

impl<L: Lanes, const N: usize> OutlierAccumulator<L> for [[L::Registers; N]; PANEL_TILES] {
    #[inline(always)]
    unsafe fn add(&mut self, tile: usize, token: usize, w: L, x: f32) {
        self[tile][token] = w.fma(L::splat(x), L::from_registers(self[tile][token])).registers();
    }
}

impl<L: Lanes, const N: usize> OutlierAccumulator<L> for [[[L::Registers; N]; PANEL_TILES]] {
    #[inline(always)]
    unsafe fn add(&mut self, tile: usize, token: usize, w: L, x: f32) {
        // SAFETY: what `OutlierAccumulator::add` is promised; `linear` has checked panels and tokens, `Dispatch::new`
        // the level.
        unsafe { OutlierAccumulator::<L>::add(&mut self[token / N], tile, token % N, w, x) }
    }
}

/// Asks for the outliers of the pass's tokens. They lie apart, so that the hardware does not see them coming.
///
/// # Safety
/// As for [`super::pass::PassFn`].
pub(super) unsafe fn fetch(p: &PanelPass) {
    for word in 0..p.words {
        for token in 0..p.tokens {
            // SAFETY: what `fetch` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
            let mut left = unsafe { p.marks.add(token * p.words + word).read_unaligned() };
            while left != 0 {
                let at = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                prefetch(p.outliers.wrapping_add(at * p.stride + token).cast(), size_of::<BlockOutliers>());
            }
        }
    }
}

/// Which blocks hold outliers, and of which tokens: of 64 blocks at a time.
pub(super) struct OutlierBlocks<'a> {
    passes: &'a [PanelPass<'a>],
    /// Which 64 blocks.
    word: usize,
    /// A bit for each of them that some token marks.
    any: u64,
    /// A bit for each token that marks it, counted through all passes.
    tokens: [u64; 64],
}

impl<'a> OutlierBlocks<'a> {
    /// Those of some passes with the panel in common; if they are several, of full tiles.
    #[inline(always)]
    pub(super) fn new(passes: &'a [PanelPass<'a>]) -> OutlierBlocks<'a> {
        OutlierBlocks { passes, word: usize::MAX, any: 0, tokens: [0; 64] }
    }

    /// The marked blocks of unit `unit`, a bit each.
    ///
    /// # Safety
    /// As for [`super::pass::PassFn`], with each pass; the unit exists.
    #[inline(always)]
    pub(super) unsafe fn blocks<F: QuantizedTileFormat>(&mut self, unit: usize) -> u64 {
        const { assert!(64 % F::UNIT_BLOCKS == 0) };
        let first = unit * F::UNIT_BLOCKS;
        if first / 64 != self.word {
            // SAFETY: what `OutlierBlocks::blocks` is promised; `linear` has checked panels and tokens,
            // `Dispatch::new` the level.
            unsafe { self.read(first / 64) }
        }
        self.any >> (first % 64) & ((1 << F::UNIT_BLOCKS) - 1)
    }

    /// Asks for the outliers of unit `unit`, which [`add`] will read when its blocks are done. A panel's are more than the
    /// first-level cache holds.
    ///
    /// # Safety
    /// As for [`OutlierBlocks::blocks`].
    #[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))] // kernels of x86-64 ask so early
    #[inline(always)]
    pub(super) unsafe fn fetch<F: QuantizedTileFormat>(&mut self, unit: usize) {
        // SAFETY: what `OutlierBlocks::fetch` is promised; `linear` has checked panels and tokens, `Dispatch::new` the
        // level.
        let mut left = unsafe { self.blocks::<F>(unit) };
        while left != 0 {
            let at = unit * F::UNIT_BLOCKS + left.trailing_zeros() as usize;
            left &= left - 1;
            each(self.tokens[at % 64], |t| prefetch(outliers_at(self.passes, at, t).cast(), 1));
        }
    }

    /// # Safety
    /// As for [`OutlierBlocks::blocks`]; each token has that word.
    #[inline(always)]
    unsafe fn read(&mut self, word: usize) {
        const { assert!(MOST <= 64) };
        (self.word, self.any, self.tokens) = (word, 0, [0; 64]);
        for (i, p) in self.passes.iter().enumerate() {
            for token in 0..p.tokens {
                // SAFETY: what `OutlierBlocks::read` is promised; `linear` has checked panels and tokens,
                // `Dispatch::new` the level.
                let mut bits = unsafe { p.marks.add(token * p.words + word).read_unaligned() };
                self.any |= bits;
                while bits != 0 {
                    self.tokens[bits.trailing_zeros() as usize] |= 1 << (i * TOKEN_TILE + token);
                    bits &= bits - 1;
                }
            }
        }
    }
}

/// Adds the outliers of unit `unit`, columns in ascending order, to sums with all blocks up to the unit's last. The
/// panel's four tiles of the unit begin at `w`, and `scales` are theirs. A column is decoded once for all passes.
///
/// # Safety
/// As for [`super::pass::PassFn`], with each pass; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn add<L: Lanes, F: QuantizedTileFormat>(
    marked: &mut OutlierBlocks,
    unit: usize,
    w: *const u8,
    scales: &[UnitScales; PANEL_TILES],
    sums: &mut (impl OutlierAccumulator<L> + ?Sized),
) {
    // SAFETY: the passes'; a marked block exists, and so do its outliers.
    unsafe {
        let mut left = marked.blocks::<F>(unit);
        while left != 0 {
            let b = left.trailing_zeros() as usize;
            left &= left - 1;
            let at = unit * F::UNIT_BLOCKS + b;
            block::<L, F>(marked.passes, w, b, at, marked.tokens[at % 64], scales, sums);
        }
    }
}

/// Adds the outliers that `tokens`, a bit each, have in block `b` of the units at `w`, block `at` of all.
///
/// # Safety
/// As for [`add`]; these tokens mark the block.
#[inline(always)]
unsafe fn block<L: Lanes, F: QuantizedTileFormat>(
    passes: &[PanelPass],
    w: *const u8,
    b: usize,
    at: usize,
    tokens: u64,
    scales: &[UnitScales; PANEL_TILES],
    sums: &mut (impl OutlierAccumulator<L> + ?Sized),
) {
    // SAFETY: what `block` is promised; a block has as many values as it has bits of columns; `linear` has checked
    // panels and tokens, `Dispatch::new` the level.
    unsafe {
        let held = |t: usize| outliers_at(passes, at, t);
        let columns = |t: usize| (&raw const (*held(t)).columns).read_unaligned();
        // Of each column the tokens that have it: asking each token for each column is a branch that no processor foresees.
        let (mut all, mut having) = (0, [0u64; BLOCK]);
        each(tokens, |t| {
            let of_token = columns(t);
            all |= of_token;
            each(of_token.into(), |column| having[column] |= 1 << t);
        });
        each(all.into(), |column| {
            let mut weights = [L::splat(0.0); PANEL_TILES];
            for (i, weights) in weights.iter_mut().enumerate() {
                *weights = decode_column::<F, L>(w.add(i * F::UNIT_BYTES), b, column, &scales[i]);
            }
            each(having[column], |t| {
                let before = columns(t) & ((1 << column) - 1);
                let values = (&raw const (*held(t)).values).cast::<f32>();
                let x = values.add(before.count_ones() as usize).read_unaligned();
                for (i, weights) in weights.iter().enumerate() {
                    sums.add(i, t, *weights, x);
                }
            });
        });
    }
}

/// The outliers of block `at` of token `t`, counted through all passes.
#[inline(always)]
fn outliers_at(passes: &[PanelPass], at: usize, t: usize) -> *const BlockOutliers {
    let p = &passes[t / TOKEN_TILE];
    p.outliers.wrapping_add(at * p.stride + t % TOKEN_TILE)
}

/// Calls `f` with the number of each bit that is set.
#[inline(always)]
fn each(mut bits: u64, mut f: impl FnMut(usize)) {
    while bits != 0 {
        f(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
