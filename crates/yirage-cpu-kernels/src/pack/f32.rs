//! F32 in tiles. Unit of 32 k: [32][16 rows] (2048 bytes).

use super::tile::{SourceBlocks, TileFormat, UnitScales};
use crate::simd::row_lanes::RowLanes;

/// See the module description.
pub(crate) struct PackedF32;

impl TileFormat for PackedF32 {
    const UNIT_BLOCKS: usize = 1;
    const UNIT_BYTES: usize = 2048;
    const PUT: usize = 32;

    #[inline(always)]
    unsafe fn put<L: RowLanes>(unit: *mut u8, _: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            for four in 0..8 {
                for (k, number) in rows.words::<L>(16 * four).into_iter().enumerate() {
                    L::put(unit.add(256 * four + 64 * k), number);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn scales<L: RowLanes>(_: *const u8, _: &mut UnitScales) {}

    #[inline(always)]
    unsafe fn four<L: RowLanes>(unit: *const u8, _: usize, g: usize, _: &UnitScales) -> [L::F; 4] {
        // SAFETY: what `TileFormat::four` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
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
