//! Q5_1 in tiles. Unit of 32 k: f16 scales (32 bytes), f16 mins (32), a one-bit plane (bit 4 of the codes, 64), nibbles
//! (256).

use super::planes::{
    add_fifth_bits, join, nibbles_pair, ones_pair, put_half, put_nibbles, put_ones, split_nibbles, words,
};
use super::tile::{Codes, Scales, Tile, decode_four};
use crate::linear::lanes::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q5_1;

impl Tile for Q5_1 {
    const UNIT_BLOCKS: usize = 1;
    const UNIT_BYTES: usize = 384;
    const PUT: usize = 32;

    fn put(unit: &mut [u8], row: usize, at: usize, src: &[u8]) {
        debug_assert_eq!(at, 0);
        let mut codes = split_nibbles(&src[8..]);
        add_fifth_bits(&mut codes, words::<1>(&src[4..])[0]);
        put_half(unit, row, src);
        put_half(&mut unit[32..], row, &src[2..]);
        put_ones(&mut unit[64..], row, &codes, 4);
        put_nibbles(&mut unit[128..], row, &codes);
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut Scales) {
        // SAFETY: as promised by the caller.
        unsafe {
            L::store(into.scale[0].as_mut_ptr(), L::f16(unit));
            L::store(into.min[0].as_mut_ptr(), L::f16(unit.add(32)));
        }
    }

    #[inline(always)]
    unsafe fn four<L: Lanes>(unit: *const u8, b: usize, g: usize, scales: &Scales) -> [L::F; 4] {
        // SAFETY: as promised by the caller.
        unsafe { decode_four::<Self, L>(unit, b, g, scales) }
    }
}

impl Codes for Q5_1 {
    const BITS: u32 = 5;
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::I; 2] {
        // SAFETY: as promised by the caller.
        unsafe {
            let p = unit.add(64 + 320 * b);
            join::<L>(nibbles_pair::<L>(p.add(64), i), ones_pair::<L>(p, i, 4))
        }
    }
}
