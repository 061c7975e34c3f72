//! TQ1_0: 256 weights of -1, 0 and 1 in 54 bytes: 32 bytes of five digits to the base three (byte l: weights l, l + 32, to
//! l + 128), 16 bytes of five (l: 160 + l, 176 + l and so on), four bytes of four (l: 240 + l, 244 + l and so on), f16 `d`.
//! A byte is a fraction whose digits are what multiplying by three carries.

use super::scaled_codes::{ScaledCodes, scale_at};

pub(super) fn unpack(b: &[u8], to: &mut ScaledCodes) {
    to.scale = scale_at(b, 52, 0);
    for (first, bytes, digits, weight) in [(0, 32, 5, 0), (32, 16, 5, 160), (48, 4, 4, 240)] {
        for l in 0..bytes {
            let mut left = b[first + l];
            for digit in 0..digits {
                to.codes[weight + digit * bytes + l] = ((u16::from(left) * 3) >> 8) as i8 - 1;
                left = left.wrapping_mul(3);
            }
        }
    }
}
