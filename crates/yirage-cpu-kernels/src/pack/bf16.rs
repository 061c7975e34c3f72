//! BF16 in tiles. Unit of 32 k: [16 pairs][16 rows][2] (1024 bytes), the operand of the BF16 dot product.

use super::tile::{SourceBlocks, TileFormat, UnitScales};
use crate::simd::Lanes;

/// See the module description.
pub(crate) struct PackedBf16;

impl TileFormat for PackedBf16 {
    const UNIT_BLOCKS: usize = 1;
    const UNIT_BYTES: usize = 1024;
    const PUT: usize = 32;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, _: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            for eight in 0..4 {
                for (pair, numbers) in rows.words::<L>(16 * eight).into_iter().enumerate() {
                    L::store_bytes(unit.add(256 * eight + 64 * pair), numbers);
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
            let (a, b) = (L::load_bytes(unit.add(128 * g)), L::load_bytes(unit.add(128 * g + 64)));
            [L::bf16(a, 0), L::bf16(a, 1), L::bf16(b, 0), L::bf16(b, 1)]
        }
    }
}
