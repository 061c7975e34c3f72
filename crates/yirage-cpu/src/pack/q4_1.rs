//! Q4_1 in tiles. Unit of 32 k: f16 scales (32 bytes), f16 mins (32), nibbles (256).

use super::planes::{nibbles_pair, put_halves, put_split_nibbles};
use super::tile::{Blocks, Codes, Scales, Tile, decode_four};
use crate::linear::lanes::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q4_1;

impl Tile for Q4_1 {
    const UNIT_BLOCKS: usize = 1;
    const UNIT_BYTES: usize = 320;
    const PUT: usize = 32;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, _: usize, rows: &Blocks) {
        // SAFETY: as promised by the caller.
        unsafe {
            put_halves(unit, rows, 0);
            put_halves(unit.add(32), rows, 2);
            put_split_nibbles::<L>(unit.add(64), rows, 4);
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut Scales) {
        // SAFETY: as promised by the caller.
        unsafe {
            L::store(into.scale_mut(0), L::f16(unit));
            L::store(into.min_mut(0), L::f16(unit.add(32)));
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
