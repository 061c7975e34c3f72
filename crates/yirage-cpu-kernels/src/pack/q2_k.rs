//! Q2_K in tiles. Unit of 256 k: f16 d (32 bytes), f16 dmin (32), the 16 file bytes of 4-bit scales and mins as
//! four columns of u32 (4 x 64), then a two-bit plane of each of the 8 blocks (128 bytes each).

use super::planes::{groups, put_columns, put_halves, put_twos, twos_pair};
use super::tile::{QuantizedTileFormat, SourceBlocks, TileFormat, UnitScales, decode_four};
use crate::simd::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q2_K;

impl TileFormat for Q2_K {
    const UNIT_BLOCKS: usize = 8;
    const UNIT_BYTES: usize = 1344;
    const PUT: usize = 256;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, _: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            put_columns(unit.add(64), rows, 0, 4);
            put_halves(unit, rows, 80);
            put_halves(unit.add(32), rows, 82);
            for half in 0..2 {
                let codes = groups::<L>(rows, 16 + 32 * half);
                for b in 0..4 {
                    put_twos::<L>(unit.add(320 + 128 * (4 * half + b)), &codes, 2 * b as u32);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut UnitScales) {
        // SAFETY: what `TileFormat::scales` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
        unsafe {
            let (d, dmin) = (L::load_f16_in_order(unit), L::splat(-0.0).sub(L::load_f16_in_order(unit.add(32))));
            for column in 0..4 {
                let v = L::load_bytes(unit.add(64 + 64 * column));
                let (scale, min) = (L::field(v, 0, 4, 0), L::field(v, 4, 4, 0));
                for i in 0..4 {
                    d.mul(L::byte(scale, i)).store(into.scale_mut(4 * column + i));
                    dmin.mul(L::byte(min, i)).store(into.min_mut(4 * column + i));
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

impl QuantizedTileFormat for Q2_K {
    const BITS: u32 = 2;
    const OFFSET: i32 = 0;
    const HALVES: usize = 2;
    const MINS: bool = true;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::Bytes; 2] {
        // SAFETY: what `QuantizedTileFormat::pair` is promised; `linear` or `unpack::row` has checked that the unit is
        // the matrix's.
        unsafe { twos_pair::<L>(unit.add(320 + 128 * b), i, 0) }
    }
}
