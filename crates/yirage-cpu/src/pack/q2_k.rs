//! Q2_K in tiles. Unit of 256 k: f16 d (32 bytes), f16 dmin (32), the 16 file bytes of 4-bit scales and mins as
//! four columns of u32 (4 x 64), then a two-bit plane of each of the 8 blocks (128 bytes each).

use super::planes::{put_half, put_twos, twos_pair, words};
use super::tile::{Codes, Scales, Tile, decode_four};
use crate::linear::lanes::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q2_K;

impl Tile for Q2_K {
    const UNIT_BLOCKS: usize = 8;
    const UNIT_BYTES: usize = 1344;
    const PUT: usize = 256;

    fn put(unit: &mut [u8], row: usize, at: usize, src: &[u8]) {
        debug_assert_eq!(at, 0);
        put_half(unit, row, &src[80..]);
        put_half(&mut unit[32..], row, &src[82..]);
        for column in 0..4 {
            let at = 64 + 64 * column + 4 * row;
            unit[at..at + 4].copy_from_slice(&src[4 * column..4 * column + 4]);
        }
        for b in 0..8 {
            let codes = words::<8>(&src[16 + b / 4 * 32..]);
            put_twos(&mut unit[320 + 128 * b..], row, &codes, 2 * (b as u32 % 4));
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut Scales) {
        // SAFETY: as promised by the caller.
        unsafe {
            let (d, dmin) = (L::f16(unit), L::sub(L::splat(-0.0), L::f16(unit.add(32))));
            for column in 0..4 {
                let v = L::load(unit.add(64 + 64 * column));
                let (scale, min) = (L::field(v, 0, 4, 0), L::field(v, 4, 4, 0));
                for i in 0..4 {
                    L::store(into.scale[4 * column + i].as_mut_ptr(), L::mul(d, L::byte(scale, i)));
                    L::store(into.min[4 * column + i].as_mut_ptr(), L::mul(dmin, L::byte(min, i)));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn four<L: Lanes>(unit: *const u8, b: usize, g: usize, scales: &Scales) -> [L::F; 4] {
        // SAFETY: as promised by the caller.
        unsafe { decode_four::<Self, L>(unit, b, g, scales) }
    }
}

impl Codes for Q2_K {
    const BITS: u32 = 2;
    const OFFSET: i32 = 0;
    const HALVES: usize = 2;
    const MINS: bool = true;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::I; 2] {
        // SAFETY: as promised by the caller.
        unsafe { twos_pair::<L>(unit.add(320 + 128 * b), i, 0) }
    }
}
