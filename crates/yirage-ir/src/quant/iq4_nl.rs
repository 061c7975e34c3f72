//! IQ4_NL: 32 weights in 18 bytes: f16 scale `d`, nibbles as Q4_0 that index a table of 16 values;
//! weight = `d * TABLE[nibble]`.

use super::FormatInfo;
use super::blocks::{each_block, half_at};

/// The values of the codes.
pub const TABLE: [i8; 16] = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113];

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "iq4_nl", block: 32, bytes: 18, ggml_type: 20, decode, encode: None };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<32, 18>(src, dst, |b, out| {
        let d = half_at(b, 0);
        for (i, q) in b[2..].iter().enumerate() {
            out[i] = d * f32::from(TABLE[usize::from(q & 15)]);
            out[i + 16] = d * f32::from(TABLE[usize::from(q >> 4)]);
        }
    });
}
