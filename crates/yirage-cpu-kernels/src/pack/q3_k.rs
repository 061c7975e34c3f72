//! Q3_K in tiles. Unit of 256 k: f16 d (32 bytes), the 12 file bytes of 6-bit scales as three columns of u32 (3 x 64),
//! then for each of the 8 blocks a one-bit plane (bit 2 of the codes, 64 bytes) and a two-bit plane (128).

use super::planes::{groups, join, ones_pair, put_columns, put_halves, put_ones, put_twos, twos_pair};
use super::tile::{QuantizedTileFormat, SourceBlocks, TileFormat, UnitScales, decode_four};
use crate::simd::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q3_K;

impl TileFormat for Q3_K {
    const UNIT_BLOCKS: usize = 8;
    const UNIT_BYTES: usize = 1760;
    const PUT: usize = 256;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, _: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            put_halves(unit, rows, 108);
            put_columns(unit.add(32), rows, 96, 3);
            let high = groups::<L>(rows, 0);
            for half in 0..2 {
                let low = groups::<L>(rows, 32 + 32 * half);
                for b in 0..4 {
                    let block = unit.add(224 + 192 * (4 * half + b));
                    put_ones::<L>(block, &high, (4 * half + b) as u32);
                    put_twos::<L>(block.add(64), &low, 2 * b as u32);
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut UnitScales) {
        // SAFETY: what `TileFormat::scales` is promised; `linear` or `unpack::row` has checked that the unit is the
        // matrix's.
        unsafe {
            let (d, bias) = (L::load_f16_in_order(unit), L::splat(32.0));
            let (c0, c1, c2) = (L::load_bytes(unit.add(32)), L::load_bytes(unit.add(96)), L::load_bytes(unit.add(160)));
            let columns = [
                L::or_bytes(L::field(c0, 0, 4, 0), L::field(c2, 0, 2, 4)),
                L::or_bytes(L::field(c1, 0, 4, 0), L::field(c2, 2, 2, 4)),
                L::or_bytes(L::field(c0, 4, 4, 0), L::field(c2, 4, 2, 4)),
                L::or_bytes(L::field(c1, 4, 4, 0), L::field(c2, 6, 2, 4)),
            ];
            for (c, column) in columns.into_iter().enumerate() {
                for i in 0..4 {
                    let scale = L::byte(column, i).sub(bias);
                    d.mul(scale).store(into.scale_mut(4 * c + i));
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

impl QuantizedTileFormat for Q3_K {
    const BITS: u32 = 3;
    const OFFSET: i32 = 4;
    const HALVES: usize = 2;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::Bytes; 2] {
        // SAFETY: what `QuantizedTileFormat::pair` is promised; `linear` or `unpack::row` has checked that the unit is
        // the matrix's.
        unsafe {
            let p = unit.add(224 + 192 * b);
            join::<L>(twos_pair::<L>(p.add(64), i, 0), ones_pair::<L>(p, i, 2))
        }
    }
}
