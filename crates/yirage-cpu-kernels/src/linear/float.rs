//! Weights decoded to f32 times f32 activations, for every format: `acc = fma(w_k, x_k, acc)`, k ascending.

use super::pass::{PanelPass, fetch};
use super::unroll::unroll;
use crate::pack::{BLOCK, PANEL_TILES, TileFormat, UnitScales};
use crate::simd::Lanes;

/// One pass, `T` tokens at a time (`T` divides how many there are).
///
/// # Safety
/// As for [`super::pass::PassFn`]; the instruction set of `L`.
#[inline(always)]
pub(crate) unsafe fn pass<L: Lanes, F: TileFormat, const T: usize>(p: &PanelPass) {
    let mut scales = UnitScales::new();
    for first in (0..p.tokens).step_by(T) {
        // SAFETY: units, tiles and blocks stay in the panel, tokens in the tile.
        unsafe {
            let mut acc = [[L::splat(0.0); T]; PANEL_TILES];
            let mut w = p.w;
            for u in 0..p.units {
                for tile in &mut acc {
                    F::scales::<L>(w, &mut scales);
                    let mut sums = *tile;
                    for b in 0..F::UNIT_BLOCKS {
                        if T == p.tokens {
                            fetch::<L, F>(p.ahead, w, b);
                        }
                        let x = p.x.cast::<f32>().add(((u * F::UNIT_BLOCKS + b) * p.stride + first) * BLOCK);
                        block::<L, F, T>(w, b, &scales, x, &mut sums);
                    }
                    *tile = sums;
                    w = w.add(F::UNIT_BYTES);
                }
            }
            for (i, tile) in acc.iter().enumerate() {
                for (t, v) in tile.iter().enumerate() {
                    p.put::<L>(i, first + t, v.registers());
                }
            }
        }
    }
}

/// # Safety
/// A unit at `w`, `T` tokens of 32 numbers at `x`; the instruction set of `L`.
#[inline(always)]
unsafe fn block<L: Lanes, F: TileFormat, const T: usize>(
    w: *const u8,
    b: usize,
    scales: &UnitScales,
    x: *const f32,
    acc: &mut [L; T],
) {
    for i in 0..4 {
        unroll!(J in [0 1] {
            // SAFETY: what `block` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
            unsafe {
                let weights = F::four::<L>(w, b, 2 * i + J, scales);
                let x = x.add(8 * i + 4 * J);
                unroll!(K in [0 1 2 3] {
                    unroll!(I < T {
                        acc[I] = weights[K].fma(L::splat(*x.add(I * BLOCK + K)), acc[I]);
                    });
                });
            }
        });
    }
}
