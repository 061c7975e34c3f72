//! MXFP4 in tiles. Unit of 64 k: E8M0 scale bytes of block 0 (16 bytes), of block 1, then nibbles of block 0 (256
//! bytes) and block 1. A nibble is an E2M1 number; kernels see twice its value (an integer) and half the scale.

use super::planes::{nibbles_pair, put_split_nibbles};
use super::tile::{QuantizedTileFormat, SourceBlocks, TILE_ROWS, TileFormat, UnitScales, decode_four};
use crate::simd::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct MXFP4;

/// Twice the value of each E2M1 number, with 16 added.
const LEVELS: [u8; 16] = [16, 17, 18, 19, 20, 22, 24, 28, 16, 15, 14, 13, 12, 10, 8, 4];

impl TileFormat for MXFP4 {
    const UNIT_BLOCKS: usize = 2;
    const UNIT_BYTES: usize = 544;
    const PUT: usize = 32;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, at: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            unit.add(16 * at).cast::<[[u8; 1]; TILE_ROWS]>().write_unaligned(rows.read(0));
            put_split_nibbles::<L>(unit.add(32 + 256 * at), rows, 1);
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut UnitScales) {
        // SAFETY: what `TileFormat::scales` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
        unsafe {
            for b in 0..2 {
                for r in 0..TILE_ROWS {
                    // 2^(e - 128), a subnormal number for e < 2
                    let e = u32::from(*unit.add(16 * b + r));
                    into.scale_mut(b).add(r).write(f32::from_bits(if e < 2 {
                        0x0020_0000 << e
                    } else {
                        (e - 1) << 23
                    }));
                }
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

impl QuantizedTileFormat for MXFP4 {
    const BITS: u32 = 5;
    const OFFSET: i32 = 16;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::Bytes; 2] {
        // SAFETY: what `QuantizedTileFormat::pair` is promised; `linear` or `unpack::row` has checked that the unit is
        // the matrix's.
        unsafe {
            let [a, b] = nibbles_pair::<L>(unit.add(32 + 256 * b), i);
            [L::lookup(&LEVELS, a), L::lookup(&LEVELS, b)]
        }
    }
}
