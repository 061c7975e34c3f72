//! What outliers add to a panel's sums, when all blocks are in them: columns of weights, each decoded once for all tokens
//! of a tile. Apart from the loop over blocks, which then has no branch that depends on data.

use super::lanes::Lanes;
use super::pass::{Pass, TOGETHER};
use crate::activation::{BlockOutliers, TOKEN_TILE};
use crate::memory::prefetch;
use crate::pack::{Codes, PANEL_TILES, Scales, decode_column};

/// Tokens at once: a bit each.
const MOST: usize = TOGETHER * TOKEN_TILE;

/// A panel's sums for a tile of tokens, or for several full ones.
pub(super) trait Sums<L: Lanes> {
    /// `sum = fma(w, x, sum)` for the rows of a tile and a token, counted through all tiles of tokens.
    ///
    /// # Safety
    /// Both exist; the instruction set of `L`.
    unsafe fn add(&mut self, tile: usize, token: usize, w: L::F, x: f32);
}

impl<L: Lanes, const N: usize> Sums<L> for [[L::F; N]; PANEL_TILES] {
    #[inline(always)]
    unsafe fn add(&mut self, tile: usize, token: usize, w: L::F, x: f32) {
        // SAFETY: as promised by the caller.
        unsafe { self[tile][token] = L::fma(w, L::splat(x), self[tile][token]) }
    }
}

impl<L: Lanes, const N: usize> Sums<L> for [[[L::F; N]; PANEL_TILES]] {
    #[inline(always)]
    unsafe fn add(&mut self, tile: usize, token: usize, w: L::F, x: f32) {
        // SAFETY: as promised by the caller.
        unsafe { Sums::<L>::add(&mut self[token / N], tile, token % N, w, x) }
    }
}

/// Asks for the outliers of the pass's tokens. They lie apart, so that the hardware does not see them coming.
///
/// # Safety
/// As for [`super::pass::PassFn`].
pub(super) unsafe fn fetch(p: &Pass) {
    for word in 0..p.words {
        for token in 0..p.tokens {
            // SAFETY: as promised by the caller.
            let mut left = unsafe { p.marks.add(token * p.words + word).read_unaligned() };
            while left != 0 {
                let at = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                prefetch(p.outliers.wrapping_add(at * p.stride + token).cast(), size_of::<BlockOutliers>());
            }
        }
    }
}

/// Adds all outliers of the passes' tokens, columns in ascending order. Several passes are of full tiles and have the
/// panel in common, so that a column is decoded once for all.
///
/// # Safety
/// As for [`super::pass::PassFn`], with each pass; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn add<L: Lanes, F: Codes>(passes: &[Pass], sums: &mut (impl Sums<L> + ?Sized)) {
    let mut scales = [const { Scales::new() }; PANEL_TILES];
    let mut scaled = usize::MAX;
    for word in 0..passes[0].words {
        let mut tokens = [0u64; 64];
        // SAFETY: the passes'; a marked block exists, and so do its unit and its outliers.
        unsafe {
            let mut left = marks(passes, word, &mut tokens);
            while left != 0 {
                let at = word * 64 + left.trailing_zeros() as usize;
                left &= left - 1;
                let (unit, b) = (at / F::UNIT_BLOCKS, at % F::UNIT_BLOCKS);
                let w = passes[0].w.add(unit * PANEL_TILES * F::UNIT_BYTES);
                if scaled != unit {
                    scaled = unit;
                    for (i, scales) in scales.iter_mut().enumerate() {
                        F::scales::<L>(w.add(i * F::UNIT_BYTES), scales);
                    }
                }
                block::<L, F>(passes, w, b, at, tokens[at % 64], &scales, sums);
            }
        }
    }
}

/// Which of 64 blocks are marked; and for each, by which tokens.
///
/// # Safety
/// As for [`add`]; each token has that word.
#[inline(always)]
unsafe fn marks(passes: &[Pass], word: usize, tokens: &mut [u64; 64]) -> u64 {
    const { assert!(MOST <= 64) };
    let mut any = 0;
    for (i, p) in passes.iter().enumerate() {
        for token in 0..p.tokens {
            // SAFETY: as promised by the caller.
            let mut bits = unsafe { p.marks.add(token * p.words + word).read_unaligned() };
            any |= bits;
            while bits != 0 {
                tokens[bits.trailing_zeros() as usize] |= 1 << (i * TOKEN_TILE + token);
                bits &= bits - 1;
            }
        }
    }
    any
}

/// Adds the outliers that `tokens`, a bit each, have in block `b` of the units at `w`, block `at` of all.
///
/// # Safety
/// As for [`add`]; the blocks of these tokens are marked, `scales` are those of the tiles' units.
#[inline(always)]
unsafe fn block<L: Lanes, F: Codes>(
    passes: &[Pass],
    w: *const u8,
    b: usize,
    at: usize,
    tokens: u64,
    scales: &[Scales; PANEL_TILES],
    sums: &mut (impl Sums<L> + ?Sized),
) {
    // SAFETY: as promised by the caller; a block has as many values as it has bits of columns.
    unsafe {
        let held = |t: usize| {
            let p = &passes[t / TOKEN_TILE];
            p.outliers.add(at * p.stride + t % TOKEN_TILE)
        };
        let mut left = 0;
        let columns = |t: usize| (&raw const (*held(t)).columns).read_unaligned();
        each(tokens, |t| left |= columns(t));
        let mut used = [0u8; MOST];
        while left != 0 {
            let column = left.trailing_zeros() as usize;
            left &= left - 1;
            let mut weights = [L::splat(0.0); PANEL_TILES];
            for (i, weights) in weights.iter_mut().enumerate() {
                *weights = decode_column::<F, L>(w.add(i * F::UNIT_BYTES), b, column, &scales[i]);
            }
            each(tokens, |t| {
                if columns(t) >> column & 1 == 1 {
                    let values = (&raw const (*held(t)).values).cast::<f32>();
                    let x = values.add(used[t] as usize).read_unaligned();
                    used[t] += 1;
                    for (i, weights) in weights.iter().enumerate() {
                        sums.add(i, t, *weights, x);
                    }
                }
            });
        }
    }
}

/// Calls `f` with the number of each bit that is set.
#[inline(always)]
fn each(mut bits: u64, mut f: impl FnMut(usize)) {
    while bits != 0 {
        f(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
