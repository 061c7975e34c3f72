//! Q6_K in tiles. Unit of 256 k: f16 d (32 bytes), signed scales of 16 weights as [16][16 rows] bytes (256), then for
//! each of the 8 blocks a two-bit plane (bits 4 and 5 of the codes, 128 bytes) and nibbles (256).

use super::planes::{groups, join, nibbles_pair, put_bytes, put_halves, put_nibbles, put_twos, twos_pair};
use super::tile::{QuantizedTileFormat, SourceBlocks, TileFormat, UnitScales, decode_four};
use crate::simd::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q6_K;

impl TileFormat for Q6_K {
    const UNIT_BLOCKS: usize = 8;
    const UNIT_BYTES: usize = 3360;
    const PUT: usize = 256;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, _: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            put_halves(unit, rows, 208);
            put_bytes(unit.add(32), rows, 192);
            for half in 0..2 {
                let high = groups::<L>(rows, 128 + 32 * half);
                for c in 0..4 {
                    put_twos::<L>(unit.add(288 + 384 * (4 * half + c)), &high, 2 * c as u32);
                }
                // low nibbles are those of blocks 0 and 1 of the half, high nibbles those of 2 and 3
                for i in 0..4 {
                    let low = unit.add(416 + 384 * (4 * half + i / 2) + 128 * (i % 2));
                    put_nibbles::<L>(low, low.add(768), rows, 64 * half + 16 * i);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut UnitScales) {
        // SAFETY: what `TileFormat::scales` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
        unsafe {
            let d = L::load_f16_in_order(unit);
            for i in 0..16 {
                d.mul(L::load_i8(unit.add(32 + 16 * i).cast())).store(into.scale_mut(i));
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

impl QuantizedTileFormat for Q6_K {
    const BITS: u32 = 6;
    const OFFSET: i32 = 32;
    const HALVES: usize = 2;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::Bytes; 2] {
        // SAFETY: what `QuantizedTileFormat::pair` is promised; `linear` or `unpack::row` has checked that the unit is
        // the matrix's.
        unsafe {
            let p = unit.add(288 + 384 * b);
            join::<L>(nibbles_pair::<L>(p.add(128), i), twos_pair::<L>(p, i, 4))
        }
    }
}
