//! F32 in tiles. Unit of 32 k: [32][16 rows] (2048 bytes).

use super::tile::{Scales, Tile};
use crate::linear::lanes::Lanes;

/// See the module description.
pub(crate) struct F32;

impl Tile for F32 {
    const UNIT_BLOCKS: usize = 1;
    const UNIT_BYTES: usize = 2048;
    const PUT: usize = 32;

    fn put(unit: &mut [u8], row: usize, at: usize, src: &[u8]) {
        debug_assert_eq!(at, 0);
        for (k, number) in src.chunks_exact(4).enumerate() {
            let to = 64 * k + 4 * row;
            unit[to..to + 4].copy_from_slice(number);
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
