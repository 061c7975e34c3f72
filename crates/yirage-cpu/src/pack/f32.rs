//! F32 in tiles. Unit of 32 k: [32][16 rows] (2048 bytes).

use super::tile::{Blocks, Scales, Tile};
use crate::linear::lanes::Lanes;

/// See the module description.
pub(crate) struct F32;

impl Tile for F32 {
    const UNIT_BLOCKS: usize = 1;
    const UNIT_BYTES: usize = 2048;
    const PUT: usize = 32;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, _: usize, rows: &Blocks) {
        // SAFETY: as promised by the caller.
        unsafe {
            for four in 0..8 {
                for (k, number) in rows.words::<L>(16 * four).into_iter().enumerate() {
                    L::put(unit.add(256 * four + 64 * k), number);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(_: *const u8, _: &mut Scales) {}

    #[inline(always)]
    unsafe fn four<L: Lanes>(unit: *const u8, _: usize, g: usize, _: &Scales) -> [L::F; 4] {
        // SAFETY: as promised by the caller.
        unsafe {
            let p = unit.add(256 * g);
            [
                L::floats(p.cast()),
                L::floats(p.add(64).cast()),
                L::floats(p.add(128).cast()),
                L::floats(p.add(192).cast()),
            ]
        }
    }
}
