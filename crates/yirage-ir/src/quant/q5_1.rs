//! Q5_1: 32 weights in 24 bytes: f16 scale `d`, f16 minimum `m`, u32 of fifth bits, nibbles as Q4_0;
//! weight = d * code + m.

use super::FormatInfo;
use super::blocks::{each_block, encode_blocks, fifth_bits, half_at, inverse, put_half, put_nibbles, range};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q5_1", block: 32, bytes: 24, ggml_type: 7, decode, encode: Some(encode) };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<32, 24>(src, dst, |b, out| {
        let (d, m, high) = (half_at(b, 0), half_at(b, 2), u32::from_le_bytes([b[4], b[5], b[6], b[7]]));
        for (i, o) in out.iter_mut().enumerate() {
            let low = b[8 + i % 16] >> (i / 16 * 4) & 15;
            *o = d * f32::from(low | ((high >> i & 1) << 4) as u8) + m;
        }
    });
}

fn encode(src: &[f32], dst: &mut [u8]) {
    encode_blocks::<32, 24>(src, dst, |x, b| {
        let (low, high) = range(x);
        let d = (high - low) / 31.0;
        let inverse = inverse(d);
        put_half(b, 0, d);
        put_half(b, 2, low);
        let codes = std::array::from_fn(|i| (((x[i] - low) * inverse + 0.5) as u8).min(31));
        b[4..8].copy_from_slice(&fifth_bits(&codes));
        put_nibbles(&codes, &mut b[8..]);
    });
}
