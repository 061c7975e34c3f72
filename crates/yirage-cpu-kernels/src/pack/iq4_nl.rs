//! IQ4_NL in tiles. Unit of 64 k: f16 scales of block 0 (32 bytes), of block 1, then nibbles of block 0 (256 bytes) and
//! block 1. A nibble is an index into 16 levels; kernels see the level.

use super::planes::{nibbles_pair, put_halves, put_split_nibbles};
use super::tile::{QuantizedTileFormat, SourceBlocks, TileFormat, UnitScales, decode_four};
use crate::simd::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct IQ4_NL;

/// The 16 levels, with 128 added.
const LEVELS: [u8; 16] = [1, 24, 45, 63, 79, 93, 106, 118, 129, 141, 153, 166, 181, 197, 217, 241];

impl TileFormat for IQ4_NL {
    const UNIT_BLOCKS: usize = 2;
    const UNIT_BYTES: usize = 576;
    const PUT: usize = 32;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, at: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            put_halves(unit.add(32 * at), rows, 0);
            put_split_nibbles::<L>(unit.add(64 + 256 * at), rows, 2);
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

impl QuantizedTileFormat for IQ4_NL {
    const BITS: u32 = 8;
    const OFFSET: i32 = 128;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::Bytes; 2] {
        // SAFETY: what `QuantizedTileFormat::pair` is promised; `linear` or `unpack::row` has checked that the unit is
        // the matrix's.
        unsafe {
            let [a, b] = nibbles_pair::<L>(unit.add(64 + 256 * b), i);
            [L::lookup(&LEVELS, a), L::lookup(&LEVELS, b)]
        }
    }
}
