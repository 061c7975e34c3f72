//! Q6_K in tiles. Unit of 256 k: f16 d (32 bytes), signed scales of 16 weights as [16][16 rows] bytes (256), then for
//! each of the 8 blocks a two-bit plane (bits 4 and 5 of the codes, 128 bytes) and nibbles (256).

use super::planes::{join, nibbles_pair, put_half, put_nibbles, put_twos, twos_pair, words};
use super::tile::{Codes, Scales, Tile, decode_four};
use crate::linear::lanes::Lanes;

/// See the module description.
#[allow(non_camel_case_types)] // the name of the file format
pub(crate) struct Q6_K;

impl Tile for Q6_K {
    const UNIT_BLOCKS: usize = 8;
    const UNIT_BYTES: usize = 3360;
    const PUT: usize = 256;

    fn put(unit: &mut [u8], row: usize, at: usize, src: &[u8]) {
        debug_assert_eq!(at, 0);
        put_half(unit, row, &src[208..]);
        for (i, scale) in src[192..208].iter().enumerate() {
            unit[32 + 16 * i + row] = *scale;
        }
        for b in 0..8 {
            let (half, c) = (b / 4, b % 4);
            let low = words::<8>(&src[64 * half + c % 2 * 32..]);
            let high = words::<8>(&src[128 + 32 * half..]);
            let codes = std::array::from_fn(|g| {
                low[g] >> (4 * (c / 2)) & 0x0f0f_0f0f | (high[g] >> (2 * c) & 0x0303_0303) << 4
            });
            put_twos(&mut unit[288 + 384 * b..], row, &codes, 4);
            put_nibbles(&mut unit[416 + 384 * b..], row, &codes);
        }
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(unit: *const u8, into: &mut Scales) {
        // SAFETY: as promised by the caller.
        unsafe {
            let d = L::f16(unit);
            for i in 0..16 {
                L::store(into.scale[i].as_mut_ptr(), L::mul(d, L::i8(unit.add(32 + 16 * i))));
            }
        }
    }

    #[inline(always)]
    unsafe fn four<L: Lanes>(unit: *const u8, b: usize, g: usize, scales: &Scales) -> [L::F; 4] {
        // SAFETY: as promised by the caller.
        unsafe { decode_four::<Self, L>(unit, b, g, scales) }
    }
}

impl Codes for Q6_K {
    const BITS: u32 = 6;
    const OFFSET: i32 = 32;
    const HALVES: usize = 2;

    #[inline(always)]
    unsafe fn pair<L: Lanes>(unit: *const u8, b: usize, i: usize) -> [L::I; 2] {
        // SAFETY: as promised by the caller.
        unsafe {
            let p = unit.add(288 + 384 * b);
            join::<L>(nibbles_pair::<L>(p.add(128), i), twos_pair::<L>(p, i, 4))
        }
    }
}
