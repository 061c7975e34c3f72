//! Q5_0 in tiles. Unit of 64 k: f16 scales of block 0 (32 bytes), of block 1, then for each block a one-bit plane (bit
//! 4 of the codes, 64 bytes) and nibbles (256).

use super::planes::{join, nibbles_pair, ones_pair, put_bits, put_halves, put_split_nibbles};
use super::tile::{QuantizedTileFormat, SourceBlocks, TileFormat, UnitScales, decode_four};
use crate::simd::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q5_0;

impl TileFormat for Q5_0 {
    const UNIT_BLOCKS: usize = 2;
    const UNIT_BYTES: usize = 704;
    const PUT: usize = 32;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, at: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            put_halves(unit.add(32 * at), rows, 0);
            put_bits(unit.add(64 + 320 * at), rows, 2);
            put_split_nibbles::<L>(unit.add(128 + 320 * at), rows, 6);
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut UnitScales) {
        // SAFETY: what `TileFormat::scales` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
        unsafe {
            for b in 0..2 {
                L::load_f16_in_order(unit.add(32 * b)).store(into.scale_mut(b));
            }
        }
    }

    #[inline(always)]
    unsafe fn four<L: Lanes>(unit: *const u8, b: usize, g: usize, scales: &UnitScales) -> [L; 4] {
        // SAFETY: what `TileFormat::four` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
        unsafe { decode_four::<Self, L>(unit, b, g, scales) }
    }
}

impl QuantizedTileFormat for Q5_0 {
    const BITS: u32 = 5;
    const OFFSET: i32 = 16;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::Bytes; 2] {
        // SAFETY: what `QuantizedTileFormat::pair` is promised; `linear` or `unpack::row` has checked that the unit is
        // the matrix's.
        unsafe {
            let p = unit.add(64 + 320 * b);
            join::<L>(nibbles_pair::<L>(p.add(64), i), ones_pair::<L>(p, i, 4))
        }
    }
}
