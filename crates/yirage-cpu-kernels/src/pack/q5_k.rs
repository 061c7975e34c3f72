//! Q5_K in tiles. Unit of 256 k: scales and mins as in Q4_K (256 bytes), then for each of the 8 blocks a one-bit plane
//! (bit 4 of the codes, 64 bytes) and nibbles (256).

use super::planes::{groups, join, nibbles_pair, ones_pair, put_nibbles, put_ones};
use super::q4_k::{put_scales, scale_columns};
use super::tile::{QuantizedTileFormat, SourceBlocks, TileFormat, UnitScales, decode_four};
use crate::simd::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q5_K;

impl TileFormat for Q5_K {
    const UNIT_BLOCKS: usize = 8;
    const UNIT_BYTES: usize = 2816;
    const PUT: usize = 256;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, _: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            put_scales(unit, rows);
            let high = groups::<L>(rows, 16);
            for pair in 0..4 {
                for half in 0..2 {
                    let low = unit.add(320 + 640 * pair + 128 * half);
                    put_nibbles::<L>(low, low.add(320), rows, 48 + 32 * pair + 16 * half);
                }
            }
            for b in 0..8 {
                put_ones::<L>(unit.add(256 + 320 * b), &high, b as u32);
            }
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut UnitScales) {
        // SAFETY: what `TileFormat::scales` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
        unsafe {
            scale_columns::<L>(unit, into);
        }
    }

    #[inline(always)]
    unsafe fn four<L: Lanes>(unit: *const u8, b: usize, g: usize, scales: &UnitScales) -> [L; 4] {
        // SAFETY: what `TileFormat::four` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
        unsafe { decode_four::<Self, L>(unit, b, g, scales) }
    }
}

impl QuantizedTileFormat for Q5_K {
    const BITS: u32 = 5;
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::Bytes; 2] {
        // SAFETY: what `QuantizedTileFormat::pair` is promised; `linear` or `unpack::row` has checked that the unit is
        // the matrix's.
        unsafe {
            let p = unit.add(256 + 320 * b);
            join::<L>(nibbles_pair::<L>(p.add(64), i), ones_pair::<L>(p, i, 4))
        }
    }
}
