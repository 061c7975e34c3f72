//! F16 in tiles. Unit of 32 k: [32][16 rows] (1024 bytes).

use super::planes::put_halves;
use super::tile::{Blocks, Scales, Tile};
use crate::linear::lanes::Lanes;

/// See the module description.
pub(crate) struct F16;

impl Tile for F16 {
    const UNIT_BLOCKS: usize = 1;
    const UNIT_BYTES: usize = 1024;
    const PUT: usize = 32;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, _: usize, rows: &Blocks) {
        // SAFETY: as promised by the caller.
        unsafe {
            for k in 0..32 {
                put_halves(unit.add(32 * k), rows, 2 * k);
            }
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(_: *const u8, _: &mut Scales) {}

    #[inline(always)]
    unsafe fn four<L: Lanes>(unit: *const u8, _: usize, g: usize, _: &Scales) -> [L::F; 4] {
        // SAFETY: as promised by the caller.
        unsafe {
            let p = unit.add(128 * g);
            [L::f16(p), L::f16(p.add(32)), L::f16(p.add(64)), L::f16(p.add(96))]
        }
    }
}
