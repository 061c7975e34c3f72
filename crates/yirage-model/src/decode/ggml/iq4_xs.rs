//! IQ4_XS: 256 weights in 136 bytes: f16 `d`, u16 of the scales' high pairs of bits, 4 bytes of their low nibbles,
//! 128 bytes of nibbles, 16 bytes for each 32 weights (byte i: weight i low, weight i + 16 high), which stand for the
//! values of IQ4_NL; weight = d * (scale - 32) * value.

use super::scaled_codes::{ScaledCodes, scale_at, u16_at};
use yirage_ir::quant::iq4_nl::TABLE;

pub(super) fn unpack(b: &[u8], to: &mut ScaledCodes) {
    to.scale = scale_at(b, 0, 0);
    let high = u16_at(b, 2);
    for group in 0..8 {
        let low = b[4 + group / 2] >> (group % 2 * 4) & 15;
        let scale = low | ((high >> (2 * group) & 3) as u8) << 4;
        to.scale_32(group, scale as i8 - 32);
        for (i, q) in b[8 + 16 * group..][..16].iter().enumerate() {
            to.codes[32 * group + i] = TABLE[usize::from(q & 15)];
            to.codes[32 * group + 16 + i] = TABLE[usize::from(q >> 4)];
        }
    }
}
