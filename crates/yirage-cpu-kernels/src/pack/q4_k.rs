//! Q4_K in tiles. Unit of 256 k: f16 d (32 bytes), f16 dmin (32), the 12 file bytes of 6-bit scales and mins as three
//! columns of u32 (3 x 64), then nibbles of each of the 8 blocks (256 bytes each).

use super::planes::{nibbles_pair, put_columns, put_halves, put_nibbles};
use super::tile::{QuantizedTileFormat, SourceBlocks, TileFormat, UnitScales, decode_four};
use crate::simd::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q4_K;

impl TileFormat for Q4_K {
    const UNIT_BLOCKS: usize = 8;
    const UNIT_BYTES: usize = 2304;
    const PUT: usize = 256;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, _: usize, rows: &SourceBlocks) {
        // SAFETY: what `TileFormat::put` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe {
            put_scales(unit, rows);
            for pair in 0..4 {
                for half in 0..2 {
                    let low = unit.add(256 + 512 * pair + 128 * half);
                    put_nibbles::<L>(low, low.add(256), rows, 16 + 32 * pair + 16 * half);
                }
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

impl QuantizedTileFormat for Q4_K {
    const BITS: u32 = 4;
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::Bytes; 2] {
        // SAFETY: what `QuantizedTileFormat::pair` is promised; `linear` or `unpack::row` has checked that the unit is
        // the matrix's.
        unsafe { nibbles_pair::<L>(unit.add(256 + 256 * b), i) }
    }
}

/// d, dmin and the 12 scale bytes of Q4_K and Q5_K (256 bytes).
///
/// # Safety
/// A whole block at each of `rows`; 256 writable bytes at `unit`.
#[inline(always)]
pub(super) unsafe fn put_scales(unit: *mut u8, rows: &SourceBlocks) {
    // SAFETY: what `put_scales` is promised; `PackedMatrix::pack_rows` has checked the rows.
    unsafe {
        put_halves(unit, rows, 0);
        put_halves(unit.add(32), rows, 2);
        put_columns(unit.add(64), rows, 4, 3);
    }
}

/// Scales d * sc and mins -(dmin * m) of the 8 blocks of Q4_K and Q5_K. Both products are exact.
///
/// # Safety
/// 256 readable bytes at `unit`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn scale_columns<L: Lanes>(unit: *const u8, into: &mut UnitScales) {
    // SAFETY: what `scale_columns` is promised; `linear` or `unpack::row` has checked that the unit is the matrix's.
    unsafe {
        let (d, dmin) = (L::load_f16_in_order(unit), L::splat(-0.0).sub(L::load_f16_in_order(unit.add(32))));
        let (c0, c1, c2) = (L::load_bytes(unit.add(64)), L::load_bytes(unit.add(128)), L::load_bytes(unit.add(192)));
        let low = [L::field(c0, 0, 6, 0), L::field(c1, 0, 6, 0)];
        let high = [
            L::or_bytes(L::field(c2, 0, 4, 0), L::field(c0, 6, 2, 4)),
            L::or_bytes(L::field(c2, 4, 4, 0), L::field(c1, 6, 2, 4)),
        ];
        for i in 0..4 {
            d.mul(L::byte(low[0], i)).store(into.scale_mut(i));
            dmin.mul(L::byte(low[1], i)).store(into.min_mut(i));
            d.mul(L::byte(high[0], i)).store(into.scale_mut(4 + i));
            dmin.mul(L::byte(high[1], i)).store(into.min_mut(4 + i));
        }
    }
}
