//! Q4_0: 32 weights in 18 bytes: f16 scale `d`, 16 bytes of nibbles (byte i: weight i low, weight i+16 high);
//! weight = d * (nibble - 8).

use super::FormatInfo;
use super::blocks::{each_block, half_at};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q4_0", block: 32, bytes: 18, ggml_type: 2, decode, encode: None };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<32, 18>(src, dst, |b, out| {
        let d = half_at(b, 0);
        for (i, q) in b[2..].iter().enumerate() {
            out[i] = d * (f32::from(q & 15) - 8.0);
            out[i + 16] = d * (f32::from(q >> 4) - 8.0);
        }
    });
}
