//! Q5_1: 32 weights in 24 bytes: f16 scale `d`, f16 minimum `m`, u32 of fifth bits, nibbles as Q4_0;
//! weight = d * code + m.

use super::FormatInfo;
use super::blocks::{each_block, half_at};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q5_1", block: 32, bytes: 24, ggml_type: 7, decode, encode: None };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<32, 24>(src, dst, |b, out| {
        let (d, m, high) = (half_at(b, 0), half_at(b, 2), u32::from_le_bytes([b[4], b[5], b[6], b[7]]));
        for (i, o) in out.iter_mut().enumerate() {
            let low = b[8 + i % 16] >> (i / 16 * 4) & 15;
            *o = d * f32::from(low | ((high >> i & 1) << 4) as u8) + m;
        }
    });
}
