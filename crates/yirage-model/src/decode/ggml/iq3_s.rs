//! IQ3_S: 256 weights in 110 bytes: f16 `d`, for each 4 weights a byte of an entry of the codebook, eight bytes of the
//! entries' ninth bits, 32 bytes of signs, four bytes of scales of four bits, one for each 32 weights;
//! weight = d * (2 * scale + 1) * number.

use super::codebooks::{four_s, signed};
use super::scaled_codes::{ScaledCodes, scale_at};

pub(super) fn unpack(b: &[u8], to: &mut ScaledCodes) {
    to.scale = scale_at(b, 0, 0);
    for group in 0..8 {
        let scale = b[106 + group / 2] >> (group % 2 * 4) & 15;
        to.scale_32(group, 2 * scale as i8 + 1);
        for i in 0..8 {
            let high = usize::from(b[66 + group] >> i & 1);
            let numbers = four_s(usize::from(b[2 + 8 * group + i]) | high << 8);
            let signs = b[74 + 4 * group + i / 2] >> (4 * (i % 2));
            to.set(32 * group + 4 * i, signed(numbers, signs));
        }
    }
}
