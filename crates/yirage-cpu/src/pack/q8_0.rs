//! Q8_0 in tiles. Unit of 64 k: f16 scales of block 0 (32 bytes), of block 1, then whole-byte codes (two's complement
//! with the sign bit flipped, so unsigned) of block 0 (512 bytes) and block 1.

use super::planes::{bytes_pair, put_bytes, put_half, words};
use super::tile::{Codes, Scales, Tile, decode_four};
use crate::linear::lanes::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q8_0;

impl Tile for Q8_0 {
    const UNIT_BLOCKS: usize = 2;
    const UNIT_BYTES: usize = 1088;
    const PUT: usize = 32;

    fn put(unit: &mut [u8], row: usize, at: usize, src: &[u8]) {
        put_half(&mut unit[32 * at..], row, src);
        put_bytes(&mut unit[64 + 512 * at..], row, &words::<8>(&src[2..]).map(|w| w ^ 0x8080_8080));
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut Scales) {
        // SAFETY: as promised by the caller.
        unsafe {
            for b in 0..2 {
                L::store(into.scale[b].as_mut_ptr(), L::f16(unit.add(32 * b)));
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
