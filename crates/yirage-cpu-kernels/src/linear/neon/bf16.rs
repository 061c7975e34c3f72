//! BF16 weights times bf16 activations.
//!
//! The order is that of `bfdot` over pairs of k; `bfmmla`, twice as fast, is defined as two of them and so gives the
//! same bits, which lets batches use it. Both are specified to the bit while `FPCR.EBF` is 0, its value in every process
//! unless that process changes it: products and sums rounded to odd, subnormal numbers taken for zero.
//!
//! `bfmlalb` and `bfmlalt`, which would give the bits of the other levels, are not used: four products an instruction,
//! no more than f32 multiply-adds, where `bfdot` has eight and `bfmmla` sixteen.

use super::dot::{Bfdot, Bfmmla, add_squares, add_words, pair_rows, put_squares};
use crate::activation::TOKEN_TILE;
use crate::linear::pass::PanelPass;
use crate::linear::unroll::unroll;
use crate::pack::{BLOCK, PANEL_TILES, PackedBf16, TileFormat};
use crate::simd::{ByteLanes as _, Neon};
use std::arch::aarch64::*;

/// Bytes of 32 numbers of a token.
const TOKEN_BYTES: usize = 2 * BLOCK;
/// Bytes of a tile's rows for 8 numbers of each, which are 16 bytes of a token.
const PIECE: usize = 256;

/// One pass for `T` tokens, 1 or 2, `S` tiles at a time: `S * T` of 4 give 16 sums, which do not wait for each
/// other.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`]; the CPU has `bfdot`.
#[inline(always)]
pub(super) unsafe fn few<const T: usize, const S: usize>(p: &PanelPass) {
    const { assert!(S * T == 4) };
    // SAFETY: units and tiles stay in the panel, tokens in the tile.
    unsafe {
        let mut acc = [[[vdupq_n_f32(0.0); 4]; T]; PANEL_TILES];
        let (mut w, mut x) = (p.w, p.x);
        for _ in 0..p.units {
            for tiles in acc.as_chunks_mut::<S>().0 {
                let mut sums = *tiles; // a copy stays in registers
                unroll!(I in [0 1 2 3] {
                    unroll!(J < S {
                        let groups = piece(w.add(J * PackedBf16::UNIT_BYTES + I * PIECE));
                        add_words::<Bfdot, T>(&mut sums[J], &groups, x.add(16 * I), TOKEN_BYTES);
                    });
                });
                *tiles = sums;
                w = w.add(S * PackedBf16::UNIT_BYTES);
            }
            x = x.add(p.stride * TOKEN_BYTES);
        }
        for (i, tile) in acc.iter().enumerate() {
            unroll!(I < T { p.put::<Neon>(i, I, tile[I]); });
        }
    }
}

/// One pass for 4, 8, 12 or 16 tokens, four at a time.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`]; the CPU has `bfmmla`.
#[inline(always)]
pub(super) unsafe fn many(p: &PanelPass) {
    // SAFETY: units and tiles stay in the panel, tokens in the tile.
    unsafe {
        let mut acc = [[[[vdupq_n_f32(0.0); 8]; 2]; TOKEN_TILE / 4]; PANEL_TILES];
        let mut w = p.w;
        for u in 0..p.units {
            for tile in &mut acc {
                let mut rows = [[[vdupq_n_u8(0); 8]; 2]; TOKEN_BYTES / 16];
                for (i, rows) in rows.iter_mut().enumerate() {
                    let [a, b, c, d] = piece(w.add(i * PIECE));
                    *rows = [pair_rows(a, b), pair_rows(c, d)];
                }
                for (c, sums) in tile[..p.tokens / 4].iter_mut().enumerate() {
                    let x = p.x.add((u * p.stride + 4 * c) * TOKEN_BYTES);
                    let mut acc = *sums; // a copy stays in registers
                    for (i, rows) in rows.iter().enumerate() {
                        add_squares::<Bfmmla>(&mut acc, rows, x.add(16 * i), TOKEN_BYTES);
                    }
                    *sums = acc;
                }
                w = w.add(PackedBf16::UNIT_BYTES);
            }
        }
        for (i, tile) in acc.iter().enumerate() {
            for (c, sums) in tile[..p.tokens / 4].iter().enumerate() {
                put_squares(p, i, 4 * c, &sums[0]);
                put_squares(p, i, 4 * c + 2, &sums[1]);
            }
        }
    }
}

/// 8 numbers of each of 16 rows, in four groups.
///
/// # Safety
/// [`PIECE`] readable bytes at `w`.
#[inline(always)]
unsafe fn piece(w: *const u8) -> [[uint8x16_t; 4]; 4] {
    // SAFETY: what `piece` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        [Neon::load_bytes(w), Neon::load_bytes(w.add(64)), Neon::load_bytes(w.add(128)), Neon::load_bytes(w.add(192))]
    }
}
