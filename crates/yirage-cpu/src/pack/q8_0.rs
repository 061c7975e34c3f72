//! Q8_0 in tiles. Unit of 64 k: f16 scales of block 0 (32 bytes), of block 1, then whole-byte codes (two's complement
//! with the sign bit flipped, so unsigned) of block 0 (512 bytes) and block 1.

use super::planes::{bytes_pair, put_flipped, put_halves};
use super::tile::{Blocks, Codes, Scales, Tile, decode_four};
use crate::linear::lanes::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q8_0;

impl Tile for Q8_0 {
    const UNIT_BLOCKS: usize = 2;
    const UNIT_BYTES: usize = 1088;
    const PUT: usize = 32;

    #[inline(always)]
    unsafe fn put<L: Lanes>(unit: *mut u8, at: usize, rows: &Blocks) {
        // SAFETY: as promised by the caller.
        unsafe {
            put_halves(unit.add(32 * at), rows, 0);
            put_flipped::<L>(unit.add(64 + 512 * at), rows, 2);
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut Scales) {
        // SAFETY: as promised by the caller.
        unsafe {
            for b in 0..2 {
                L::store(into.scale_mut(b), L::f16(unit.add(32 * b)));
            }
        }
    }

    #[inline(always)]
    unsafe fn four<L: Lanes>(unit: *const u8, b: usize, g: usize, scales: &Scales) -> [L::F; 4] {
        // SAFETY: as promised by the caller.
        unsafe { decode_four::<Self, L>(unit, b, g, scales) }
    }
}

impl Codes for Q8_0 {
    const BITS: u32 = 8;
    const OFFSET: i32 = 128;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::I; 2] {
        // SAFETY: as promised by the caller.
        unsafe { bytes_pair::<L>(unit.add(64 + 512 * b), i) }
    }
}
