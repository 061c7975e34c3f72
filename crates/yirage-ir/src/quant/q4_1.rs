//! Q4_1: 32 weights in 20 bytes: f16 scale `d`, f16 minimum `m`, 16 bytes of nibbles as Q4_0;
//! weight = d * nibble + m.

use super::FormatInfo;
use super::blocks::{each_block, encode_blocks, half_at, inverse, put_half, put_nibbles, range};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q4_1", block: 32, bytes: 20, ggml_type: 3, decode, encode: Some(encode) };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<32, 20>(src, dst, |b, out| {
        let (d, m) = (half_at(b, 0), half_at(b, 2));
        for (i, q) in b[4..].iter().enumerate() {
            out[i] = d * f32::from(q & 15) + m;
            out[i + 16] = d * f32::from(q >> 4) + m;
        }
    });
}

fn encode(src: &[f32], dst: &mut [u8]) {
    encode_blocks::<32, 20>(src, dst, |x, b| {
        let (low, high) = range(x);
        let d = (high - low) / 15.0;
        let inverse = inverse(d);
        put_half(b, 0, d);
        put_half(b, 2, low);
        let codes = std::array::from_fn(|i| (((x[i] - low) * inverse + 0.5) as u8).min(15));
        put_nibbles(&codes, &mut b[4..]);
    });
}
