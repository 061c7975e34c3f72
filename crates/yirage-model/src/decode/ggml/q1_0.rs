//! Q1_0: 128 weights of -1 and 1 in 18 bytes: f16 `d`, 16 bytes of bits, the lowest first, a set one for 1.

use super::scaled_codes::{ScaledCodes, scale_at};

pub(super) fn unpack(b: &[u8], to: &mut ScaledCodes) {
    to.scale = scale_at(b, 0, 0);
    for (i, code) in to.codes[..128].iter_mut().enumerate() {
        *code = 2 * (b[2 + i / 8] >> (i % 8) & 1) as i8 - 1;
    }
}
