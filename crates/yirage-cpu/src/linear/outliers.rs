//! What outliers add to the sums of a block: a column of weights, decoded once for all tokens, times each.

use super::lanes::Lanes;
use super::pass::Pass;
use crate::activation::TOKEN_TILE;
use crate::pack::{Codes, Scales, Tile, decode_column};

/// Which tokens have outliers, in 64 blocks around a unit.
pub(super) struct Marks([u16; 64]);

impl Marks {
    /// To be sought for the first unit.
    #[inline(always)]
    pub(super) fn new() -> Marks {
        Marks([0; 64])
    }

    /// Reads the bits of `unit`'s blocks. Units come in ascending order from 0.
    ///
    /// # Safety
    /// As for [`PassFn`]; the unit exists.
    #[inline(always)]
    pub(super) unsafe fn seek<F: Tile>(&mut self, p: &Pass, unit: usize) {
        const { assert!(64 % F::UNIT_BLOCKS == 0 && TOKEN_TILE <= 16) };
        let block = unit * F::UNIT_BLOCKS;
        if block.is_multiple_of(64) {
            // SAFETY: as promised by the caller.
            unsafe { self.read(p, block / 64) };
        }
    }

    /// Turns the word that each token has into a word for each block.
    ///
    /// # Safety
    /// As for [`PassFn`]; the word exists.
    #[inline(never)] // once for 64 blocks
    unsafe fn read(&mut self, p: &Pass, word: usize) {
        self.0 = [0; 64];
        for token in 0..p.tokens {
            // SAFETY: each token has that word.
            let mut bits = unsafe { p.marks.add(token * p.words + word).read_unaligned() };
            while bits != 0 {
                self.0[bits.trailing_zeros() as usize] |= 1 << token;
                bits &= bits - 1;
            }
        }
    }

    /// A bit for each token that has outliers in `block`, one of the unit's.
    #[inline(always)]
    pub(super) fn tokens(&self, block: usize) -> u16 {
        self.0[block % 64]
    }

    /// Whether any token has outliers in `block`, one of the unit's.
    #[inline(always)]
    pub(super) fn any(&self, block: usize) -> bool {
        self.tokens(block) != 0
    }
}

/// The sums of a tile of rows for some tokens.
pub(super) trait Sums<L: Lanes> {
    /// `sum = fma(w, x, sum)` of a token.
    ///
    /// # Safety
    /// The token exists; the instruction set of `L`.
    unsafe fn add(&mut self, token: usize, w: L::F, x: f32);
}

impl<L: Lanes> Sums<L> for [L::F] {
    #[inline(always)]
    unsafe fn add(&mut self, token: usize, w: L::F, x: f32) {
        // SAFETY: as promised by the caller.
        unsafe { self[token] = L::fma(w, L::splat(x), self[token]) }
    }
}

/// Adds the outliers that `tokens`, a bit each, have in block `b` of the unit at `w`, block `at` of all; columns in
/// ascending order.
///
/// # Safety
/// As for [`super::pass::PassFn`]; the blocks of these tokens are marked, `scales` are the unit's; the instruction set of
/// `L`.
#[inline(always)]
pub(super) unsafe fn add<L: Lanes, F: Codes>(
    p: &Pass,
    w: *const u8,
    b: usize,
    at: usize,
    tokens: u16,
    scales: &Scales,
    sums: &mut (impl Sums<L> + ?Sized),
) {
    // SAFETY: as promised by the caller; a marked block of a token has outliers.
    unsafe {
        let held = p.outliers.add(at * p.tokens);
        let mut left = 0;
        each(tokens.into(), |t| left |= (*held.add(t)).columns);
        let mut used = [0u8; TOKEN_TILE];
        while left != 0 {
            let column = left.trailing_zeros() as usize;
            left &= left - 1;
            let weights = decode_column::<F, L>(w, b, column, scales);
            each(tokens.into(), |t| {
                let held = &*held.add(t);
                if held.columns >> column & 1 == 1 {
                    sums.add(t, weights, held.values[used[t] as usize]);
                    used[t] += 1;
                }
            });
        }
    }
}

/// Calls `f` with the number of each bit that is set.
#[inline(always)]
fn each(mut bits: u32, mut f: impl FnMut(usize)) {
    while bits != 0 {
        f(bits.trailing_zeros() as usize);
        bits &= bits - 1;
    }
}
