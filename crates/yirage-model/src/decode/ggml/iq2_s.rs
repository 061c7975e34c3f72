//! IQ2_S: 256 weights in 82 bytes: f16 `d`, for each 8 weights a byte of an entry of the codebook, then for each a byte of
//! signs, eight bytes of the entries' two high bits, eight bytes of scales of four bits, one for each 16 weights;
//! weight = d * (scale + 1/2) / 4 * number.

use super::codebooks::{IQ2_S, eight, signed};
use super::scaled_codes::{ScaledCodes, scale_at};

pub(super) fn unpack(b: &[u8], to: &mut ScaledCodes) {
    to.scale = scale_at(b, 0, 3);
    for (i, scale) in to.scales.iter_mut().enumerate() {
        *scale = 2 * (b[74 + i / 2] >> (i % 2 * 4) & 15) as i8 + 1;
    }
    for i in 0..32 {
        let high = usize::from(b[66 + i / 4] >> (2 * (i % 4)) & 3);
        let numbers = eight(&IQ2_S, usize::from(b[2 + i]) | high << 8);
        to.set(8 * i, signed(numbers, b[34 + i]));
    }
}
