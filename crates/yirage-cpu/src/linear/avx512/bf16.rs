//! BF16 weights times bf16 activations by `vdpbf16ps`: pairs of k of 16 rows at once.
//!
//! Two loop orders over a panel. Up to 8 tokens: unit by unit over the four tiles, one memory stream. 16 tokens: tile
//! by tile, accumulators in registers.

use crate::linear::lanes::{Avx512Lanes, Lanes};
use crate::linear::pass::Pass;
use crate::linear::unroll::unroll;
use crate::pack::{BF16, BLOCK, PANEL_TILES, Tile};
use std::arch::x86_64::*;

/// BF16 weights times bf16 activations for `N` tokens.
///
/// # Safety
/// As for [`crate::linear::pass::PassFn`].
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bf16")]
pub(super) unsafe fn pass<const N: usize>(p: &Pass) {
    // A register of bf16 pairs from the 64 bytes of 16 rows, or from one token's pair.
    macro_rules! pairs {
        ($v:expr) => {
            std::mem::transmute::<__m512i, __m512bh>($v)
        };
    }
    macro_rules! unit {
        ($w:expr, $x:expr, $acc:expr, $ahead:expr) => {
            for i in 0..BLOCK / 2 {
                Avx512Lanes::fetch($w.wrapping_add($ahead + 64 * i));
                let v = pairs!(_mm512_loadu_si512($w.add(64 * i).cast()));
                unroll!(I < N {
                    let x = $x.add(I * 2 * BLOCK + 4 * i).cast::<i32>().read_unaligned();
                    $acc[I] = _mm512_dpbf16_ps($acc[I], v, pairs!(_mm512_set1_epi32(x)));
                });
            }
        };
    }
    const STEP: usize = PANEL_TILES * BF16::UNIT_BYTES;
    // SAFETY: units and tiles stay in the panel, tokens in the tile; prefetches may leave it.
    unsafe {
        if N == 16 {
            for tile in 0..PANEL_TILES {
                let mut acc = [_mm512_setzero_ps(); N];
                for u in 0..p.units {
                    let w = p.w.add(u * STEP + tile * BF16::UNIT_BYTES);
                    unit!(w, p.x.add(u * p.stride * 2 * BLOCK), acc, 2 * STEP);
                }
                unroll!(I < N { p.put::<Avx512Lanes>(tile, I, acc[I]); });
            }
        } else {
            let mut sums = [[_mm512_setzero_ps(); N]; PANEL_TILES];
            for u in 0..p.units {
                for (i, tile) in sums.iter_mut().enumerate() {
                    let mut acc = *tile;
                    unit!(
                        p.w.add(u * STEP + i * BF16::UNIT_BYTES),
                        p.x.add(u * p.stride * 2 * BLOCK),
                        acc,
                        Avx512Lanes::AHEAD
                    );
                    *tile = acc;
                }
            }
            for (i, tile) in sums.iter().enumerate() {
                unroll!(I < N { p.put::<Avx512Lanes>(i, I, tile[I]); });
            }
        }
    }
}
