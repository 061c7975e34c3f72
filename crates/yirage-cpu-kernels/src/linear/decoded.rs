//! Full tiles of tokens times weights decoded to f32, for every format: `acc = fma(w_k, x_k, acc)`, k ascending, as in
//! `float`.
//!
//! A panel is decoded piece by piece along k, and a piece meets many tiles while the second-level cache holds it and
//! what it meets of them. Between pieces the sums wait in memory, which rounds nothing.

use super::pass::PanelPass;
use super::unroll::unroll;
use crate::activation::TOKEN_TILE;
use crate::pack::{BLOCK, PANEL_ROWS, PANEL_TILES, TILE_ROWS, TileFormat, UnitScales};
use crate::simd::Lanes;
use std::array::from_fn;
use std::mem::MaybeUninit;

/// 32-blocks of a piece: a multiple of every format's unit. 128 and 256 k are equally good on Zen 3, 32 and 64 slower.
const PIECE: usize = 8;
/// Tiles of tokens that meet a piece.
const TILES: usize = 8;

/// The functions of an instruction set and a weight format.
#[derive(Clone, Copy)]
pub(crate) struct DecodedKernel {
    /// From some units at `w` of a panel to `[tile][k][row]`.
    decode: unsafe fn(w: *const u8, units: usize, into: *mut f32),
    /// Adds a piece to a tile of tokens.
    multiply: unsafe fn(&PanelPass, &DecodedBlock),
    unit_blocks: usize,
    unit_bytes: usize,
}

/// A piece of a panel, for one tile of tokens.
pub(crate) struct DecodedBlock {
    /// `[tile][k][row]`, [`PIECE`] blocks a tile.
    w: *const f32,
    /// 32-blocks there are.
    blocks: usize,
    /// The sums so far: `[tile][token][row]`.
    sums: *mut f32,
    /// From a byte of these tokens to that of the next tile's, whether there is one or not.
    next: usize,
    /// Nothing was summed yet.
    first: bool,
    /// The sums are the result.
    last: bool,
}

/// Whole cache lines, or every second read would touch two.
#[repr(C, align(64))]
struct DecodedScratch {
    w: [f32; PANEL_ROWS * PIECE * BLOCK],
    sums: [f32; PANEL_ROWS * TILES * TOKEN_TILE],
}

/// The functions for an instruction set's module: it gives them the features of `L`.
macro_rules! functions {
    ($lanes:ty, $features:meta) => {
        /// Full tiles with f32 activations.
        pub(super) fn decoded<F: crate::pack::TileFormat>() -> crate::linear::decoded::DecodedKernel {
            crate::linear::decoded::DecodedKernel::new::<F>(decode::<F>, multiply)
        }

        /// # Safety
        /// As for [`crate::linear::decoded::decode`].
        #[$features]
        unsafe fn decode<F: crate::pack::TileFormat>(w: *const u8, units: usize, into: *mut f32) {
            // SAFETY: what `decode` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
            unsafe { crate::linear::decoded::decode::<$lanes, F>(w, units, into) }
        }

        /// # Safety
        /// As for [`crate::linear::decoded::multiply`].
        #[$features]
        unsafe fn multiply(p: &crate::linear::pass::PanelPass, piece: &crate::linear::decoded::DecodedBlock) {
            // SAFETY: what `multiply` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
            unsafe { crate::linear::decoded::multiply::<$lanes>(p, piece) }
        }
    };
}
pub(super) use functions;

impl DecodedKernel {
    /// For weights of the format `F`.
    pub(crate) fn new<F: TileFormat>(
        decode: unsafe fn(*const u8, usize, *mut f32),
        multiply: unsafe fn(&PanelPass, &DecodedBlock),
    ) -> DecodedKernel {
        const { assert!(PIECE.is_multiple_of(F::UNIT_BLOCKS)) };
        DecodedKernel { decode, multiply, unit_blocks: F::UNIT_BLOCKS, unit_bytes: F::UNIT_BYTES }
    }

    /// A panel times `tiles` full tiles of tokens; `pass` says what to do for each.
    ///
    /// # Safety
    /// As for [`super::pass::PassFn`] with every pass, which have all the same weights.
    #[inline(never)] // 96 KiB of stack that one token need not touch
    pub(crate) unsafe fn run<'a>(&self, tiles: usize, pass: &dyn Fn(usize) -> PanelPass<'a>) {
        let mut room = MaybeUninit::<DecodedScratch>::uninit();
        let room = room.as_mut_ptr();
        // SAFETY: places in `room`.
        let (w, sums) = unsafe { ((&raw mut (*room).w).cast::<f32>(), (&raw mut (*room).sums).cast::<f32>()) };
        let most = PIECE / self.unit_blocks;
        for begin in (0..tiles).step_by(TILES) {
            let units = pass(begin).units;
            let next = units * self.unit_blocks * TOKEN_TILE * BLOCK * size_of::<f32>();
            for unit in (0..units).step_by(most) {
                let now = most.min(units - unit);
                // SAFETY: the units exist, and `w` has room for as many.
                unsafe { (self.decode)(pass(begin).w.add(unit * PANEL_TILES * self.unit_bytes), now, w) };
                for tile in begin..tiles.min(begin + TILES) {
                    let mut p = pass(tile);
                    p.x = p.x.wrapping_add(unit * self.unit_blocks * TOKEN_TILE * BLOCK * size_of::<f32>());
                    let sums = sums.wrapping_add((tile - begin) * TOKEN_TILE * PANEL_ROWS);
                    let (blocks, last) = (now * self.unit_blocks, unit + now == units);
                    // SAFETY: what `DecodedKernel::run` is promised; the sums of earlier pieces are there; `linear`
                    // has checked panels and tokens, `Dispatch::new` the level.
                    unsafe { (self.multiply)(&p, &DecodedBlock { w, blocks, sums, next, first: unit == 0, last }) };
                }
            }
        }
    }
}

/// Decodes `units` units of a panel.
///
/// # Safety
/// They lie at `w`, `into` has room for them, and the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn decode<L: Lanes, F: TileFormat>(mut w: *const u8, units: usize, into: *mut f32) {
    let mut scales = UnitScales::new();
    for unit in 0..units {
        for tile in 0..PANEL_TILES {
            // SAFETY: what `decode` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
            unsafe {
                F::scales::<L>(w, &mut scales);
                for b in 0..F::UNIT_BLOCKS {
                    let to = into.add((tile * PIECE + unit * F::UNIT_BLOCKS + b) * BLOCK * TILE_ROWS);
                    for g in 0..8 {
                        let four = F::four::<L>(w, b, g, &scales);
                        for (k, weights) in four.into_iter().enumerate() {
                            weights.store(to.add((4 * g + k) * TILE_ROWS));
                        }
                    }
                }
                w = w.add(F::UNIT_BYTES);
            }
        }
    }
}

/// Adds a piece to a tile of [`TOKEN_TILE`] tokens, as many at a time as the registers hold sums.
///
/// # Safety
/// As for [`super::pass::PassFn`], but for the weights, which are the piece's; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn multiply<L: Lanes>(p: &PanelPass, piece: &DecodedBlock) {
    const { assert!(TOKEN_TILE == 16 && (L::TOKENS == 6 || L::TOKENS == 16)) };
    // SAFETY: what `multiply` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        if L::TOKENS == TOKEN_TILE {
            // a number of a token serves two tiles: where products start as often as loads, one for each were too many
            for tile in (0..PANEL_TILES).step_by(2) {
                tokens::<L, 2, 8>(p, piece, tile, 0);
                tokens::<L, 2, 8>(p, piece, tile, 8);
            }
            return;
        }
        for tile in 0..PANEL_TILES {
            tokens::<L, 1, 6>(p, piece, tile, 0);
            tokens::<L, 1, 5>(p, piece, tile, 6);
            tokens::<L, 1, 5>(p, piece, tile, 11);
        }
    }
}

/// `R` times 16 rows of a piece, from `tile` on, for `T` tokens from `first` on.
///
/// # Safety
/// As for [`multiply`].
#[inline(always)]
unsafe fn tokens<L: Lanes, const R: usize, const T: usize>(
    p: &PanelPass,
    piece: &DecodedBlock,
    tile: usize,
    first: usize,
) {
    const TILE_NUMBERS: usize = PIECE * BLOCK * TILE_ROWS;
    // SAFETY: tiles, tokens and blocks exist.
    unsafe {
        let sums = |r: usize, t: usize| piece.sums.add(((tile + r) * TOKEN_TILE + first + t) * TILE_ROWS);
        let mut acc = [[L::splat(0.0); T]; R];
        if !piece.first {
            unroll!(J < R { unroll!(I < T { acc[J][I] = L::load_in_order(sums(J, I)); }); });
        }
        let mut w = piece.w.add(tile * TILE_NUMBERS);
        let mut x = p.x.cast::<f32>().add(first * BLOCK);
        for _ in 0..piece.blocks {
            if tile == 0 {
                for line in (0..T * BLOCK).step_by(16) {
                    L::fetch(x.wrapping_byte_add(piece.next).wrapping_add(line).cast());
                }
            }
            for four in 0..8 {
                unroll!(K in [0 1 2 3] {
                    let rows: [L; R] = from_fn(|r| L::load_in_order(w.add(r * TILE_NUMBERS + K * TILE_ROWS)));
                    unroll!(I < T {
                        let x = L::splat(*x.add(I * BLOCK + 4 * four + K));
                        unroll!(J < R { acc[J][I] = rows[J].fma(x, acc[J][I]); });
                    });
                });
                w = w.add(4 * TILE_ROWS);
            }
            x = x.add(TOKEN_TILE * BLOCK);
        }
        unroll!(J < R { unroll!(I < T {
            if piece.last {
                p.put::<L>(tile + J, first + I, acc[J][I].registers());
            } else {
                acc[J][I].store(sums(J, I));
            }
        }); });
    }
}
