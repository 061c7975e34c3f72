//! Q4_1 in tiles. Unit of 32 k: f16 scales (32 bytes), f16 mins (32), nibbles (256).

use super::planes::{nibbles_pair, put_half, put_nibbles, split_nibbles};
use super::tile::{Codes, Scales, Tile, decode_four};
use crate::linear::lanes::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q4_1;

impl Tile for Q4_1 {
    const UNIT_BLOCKS: usize = 1;
    const UNIT_BYTES: usize = 320;
    const PUT: usize = 32;

    fn put(unit: &mut [u8], row: usize, at: usize, src: &[u8]) {
        debug_assert_eq!(at, 0);
        put_half(unit, row, src);
        put_half(&mut unit[32..], row, &src[2..]);
        put_nibbles(&mut unit[64..], row, &split_nibbles(&src[4..]));
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

impl Codes for Q4_1 {
    const BITS: u32 = 4;
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::I; 2] {
        // SAFETY: as promised by the caller.
        unsafe { nibbles_pair::<L>(unit.add(64 + 256 * b), i) }
    }
}
