//! Q5_K in tiles. Unit of 256 k: scales and mins as in Q4_K (256 bytes), then for each of the 8 blocks a one-bit plane
//! (bit 4 of the codes, 64 bytes) and nibbles (256).

use super::planes::{join, nibbles_pair, ones_pair, put_nibbles, put_ones, words};
use super::q4_k::{put_columns, scale_columns};
use super::tile::{Codes, Scales, Tile, decode_four};
use crate::linear::lanes::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q5_K;

impl Tile for Q5_K {
    const UNIT_BLOCKS: usize = 8;
    const UNIT_BYTES: usize = 2816;
    const PUT: usize = 256;

    fn put(unit: &mut [u8], row: usize, at: usize, src: &[u8]) {
        debug_assert_eq!(at, 0);
        put_columns(unit, row, src);
        let high = words::<8>(&src[16..]);
        for b in 0..8 {
            let low = words::<8>(&src[48 + b / 2 * 32..]);
            let codes =
                std::array::from_fn(|g| low[g] >> (4 * (b % 2)) & 0x0f0f_0f0f | (high[g] >> b & 0x0101_0101) << 4);
            put_ones(&mut unit[256 + 320 * b..], row, &codes, 4);
            put_nibbles(&mut unit[320 + 320 * b..], row, &codes);
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

impl Codes for Q5_K {
    const BITS: u32 = 5;
    const OFFSET: i32 = 0;
    const MINS: bool = true;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::I; 2] {
        // SAFETY: as promised by the caller.
        unsafe {
            let p = unit.add(256 + 320 * b);
            join::<L>(nibbles_pair::<L>(p.add(64), i), ones_pair::<L>(p, i, 4))
        }
    }
}
