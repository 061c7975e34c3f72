//! F32 in tiles. Unit of 32 k: [32][16 rows] (2048 bytes).

use super::tile::{SourceBlocks, TileFormat, UnitScales};
use crate::simd::Lanes;

/// See the module description.
pub(crate) struct PackedF32;

impl TileFormat for PackedF32 {
    const UNIT_BLOCKS: usize = 1;
    const UNIT_BYTES: usize = 2048;
    const PUT: usize = 32;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, _: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            for four in 0..8 {
                for (k, number) in rows.words::<L>(16 * four).into_iter().enumerate() {
                    L::store_bytes(unit.add(256 * four + 64 * k), number);
                }
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
            let p = unit.add(256 * g);
            [
                L::load_in_order(p.cast()),
                L::load_in_order(p.add(64).cast()),
                L::load_in_order(p.add(128).cast()),
                L::load_in_order(p.add(192).cast()),
            ]
        }
    }
}
