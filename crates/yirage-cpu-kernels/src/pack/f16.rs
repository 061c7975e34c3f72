//! F16 in tiles. Unit of 32 k: [32][16 rows] (1024 bytes).

use super::planes::put_halves;
use super::tile::{SourceBlocks, TileFormat, UnitScales};
use crate::simd::Lanes;

/// See the module description.
pub(crate) struct PackedF16;

impl TileFormat for PackedF16 {
    const UNIT_BLOCKS: usize = 1;
    const UNIT_BYTES: usize = 1024;
    const PUT: usize = 32;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, _: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            for k in 0..32 {
                put_halves(unit.add(32 * k), rows, 2 * k);
            }
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(_: *const u8, _: &mut UnitScales) {}

    #[inline(always)]
    unsafe fn four<L: Lanes>(unit: *const u8, _: usize, g: usize, _: &UnitScales) -> [L; 4] {
        // SAFETY: what `TileFormat::four` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
        unsafe {
            let p = unit.add(128 * g);
            [
                L::load_f16_in_order(p),
                L::load_f16_in_order(p.add(32)),
                L::load_f16_in_order(p.add(64)),
                L::load_f16_in_order(p.add(96)),
            ]
        }
    }
}
