//! TQ2_0: 256 weights of -1 to 2 in 66 bytes: 64 bytes of four codes (of each 128 weights, byte l holds weights l, l + 32,
//! l + 64, l + 96 from the low bits up), f16 `d`; weight = d * (code - 1).

use super::scaled_codes::{ScaledCodes, scale_at};

pub(super) fn unpack(b: &[u8], to: &mut ScaledCodes) {
    to.scale = scale_at(b, 64, 0);
    for (i, code) in to.codes.iter_mut().enumerate() {
        *code = (b[i / 128 * 32 + i % 32] >> (2 * (i % 128 / 32)) & 3) as i8 - 1;
    }
}
