//! Q4_1: 32 weights in 20 bytes: f16 scale `d`, f16 minimum `m`, 16 bytes of nibbles as Q4_0;
//! weight = d * nibble + m.

use super::FormatInfo;
use super::blocks::{each_block, half_at};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q4_1", block: 32, bytes: 20, ggml_type: 3, decode, encode: None };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<32, 20>(src, dst, |b, out| {
        let (d, m) = (half_at(b, 0), half_at(b, 2));
        for (i, q) in b[4..].iter().enumerate() {
            out[i] = d * f32::from(q & 15) + m;
            out[i + 16] = d * f32::from(q >> 4) + m;
        }
    });
}
