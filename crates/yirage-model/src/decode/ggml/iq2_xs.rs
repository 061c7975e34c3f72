//! IQ2_XS: 256 weights in 74 bytes: f16 `d`, a u16 for each 8 weights (nine bits of an entry of the codebook, seven bits of
//! signs), eight bytes of scales of four bits, one for each 16 weights; weight = d * (scale + 1/2) / 4 * number.

use super::codebooks::{IQ2_XS, eight, even_signs, signed};
use super::scaled_codes::{ScaledCodes, scale_at, u16_at};

pub(super) fn unpack(b: &[u8], to: &mut ScaledCodes) {
    to.scale = scale_at(b, 0, 3);
    for (i, scale) in to.scales.iter_mut().enumerate() {
        *scale = 2 * (b[66 + i / 2] >> (i % 2 * 4) & 15) as i8 + 1;
    }
    for i in 0..32 {
        let packed = u16_at(b, 2 + 2 * i);
        let numbers = eight(&IQ2_XS, usize::from(packed & 511));
        to.set(8 * i, signed(numbers, even_signs(u32::from(packed >> 9))));
    }
}
