//! Q4_K in tiles. Unit of 256 k: f16 d (32 bytes), f16 dmin (32), the 12 file bytes of 6-bit scales and mins as three
//! columns of u32 (3 x 64), then nibbles of each of the 8 blocks (256 bytes each).

use super::planes::{nibbles_pair, put_half, put_nibbles, words};
use super::tile::{Codes, Scales, Tile, decode_four};
use crate::linear::lanes::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q4_K;

impl Tile for Q4_K {
    const UNIT_BLOCKS: usize = 8;
    const UNIT_BYTES: usize = 2304;
    const PUT: usize = 256;

    fn put(unit: &mut [u8], row: usize, at: usize, src: &[u8]) {
        debug_assert_eq!(at, 0);
        put_columns(unit, row, src);
        for pair in 0..4 {
            let w = words::<8>(&src[16 + 32 * pair..]);
            put_nibbles(&mut unit[256 + 512 * pair..], row, &w);
            put_nibbles(&mut unit[512 + 512 * pair..], row, &w.map(|w| w >> 4));
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut Scales) {
        // SAFETY: as promised by the caller.
        unsafe {
            scale_columns::<L>(unit, into);
        }
    }

    #[inline(always)]
    unsafe fn four<L: Lanes>(unit: *const u8, b: usize, g: usize, scales: &Scales) -> [L::F; 4] {
        // SAFETY: as promised by the caller.
        unsafe { decode_four::<Self, L>(unit, b, g, scales) }
    }
}

impl Codes for Q4_K {
    const BITS: u32 = 4;
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::I; 2] {
        // SAFETY: as promised by the caller.
        unsafe { nibbles_pair::<L>(unit.add(256 + 256 * b), i) }
    }
}

/// d, dmin and the 12 scale bytes of Q4_K and Q5_K.
pub(super) fn put_columns(unit: &mut [u8], row: usize, src: &[u8]) {
    put_half(unit, row, src);
    put_half(&mut unit[32..], row, &src[2..]);
    for column in 0..3 {
        let at = 64 + 64 * column + 4 * row;
        unit[at..at + 4].copy_from_slice(&src[4 + 4 * column..8 + 4 * column]);
    }
}

/// Scales d * sc and mins -(dmin * m) of the 8 blocks of Q4_K and Q5_K. Both products are exact.
///
/// # Safety
/// 256 readable bytes at `unit`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn scale_columns<L: Lanes>(unit: *const u8, into: &mut Scales) {
    // SAFETY: as promised by the caller.
    unsafe {
        let (d, dmin) = (L::f16(unit), L::sub(L::splat(-0.0), L::f16(unit.add(32))));
        let (c0, c1, c2) = (L::load(unit.add(64)), L::load(unit.add(128)), L::load(unit.add(192)));
        let low = [L::field(c0, 0, 6, 0), L::field(c1, 0, 6, 0)];
        let high =
            [L::or(L::field(c2, 0, 4, 0), L::field(c0, 6, 2, 4)), L::or(L::field(c2, 4, 4, 0), L::field(c1, 6, 2, 4))];
        for i in 0..4 {
            L::store(into.scale[i].as_mut_ptr(), L::mul(d, L::byte(low[0], i)));
            L::store(into.min[i].as_mut_ptr(), L::mul(dmin, L::byte(low[1], i)));
            L::store(into.scale[4 + i].as_mut_ptr(), L::mul(d, L::byte(high[0], i)));
            L::store(into.min[4 + i].as_mut_ptr(), L::mul(dmin, L::byte(high[1], i)));
        }
    }
}
