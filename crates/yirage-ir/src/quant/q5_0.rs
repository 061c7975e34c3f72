//! Q5_0: 32 weights in 22 bytes: f16 scale `d`, u32 of fifth bits (bit i: weight i), nibbles as Q4_0;
//! weight = d * (code - 16).

use super::FormatInfo;
use super::blocks::{each_block, encode_blocks, extreme, fifth_bits, half_at, inverse, put_half, put_nibbles};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q5_0", block: 32, bytes: 22, ggml_type: 6, decode, encode: Some(encode) };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<32, 22>(src, dst, |b, out| {
        let (d, high) = (half_at(b, 0), u32::from_le_bytes([b[2], b[3], b[4], b[5]]));
        for (i, o) in out.iter_mut().enumerate() {
            let low = b[6 + i % 16] >> (i / 16 * 4) & 15;
            *o = d * (f32::from(low | ((high >> i & 1) << 4) as u8) - 16.0);
        }
    });
}

fn encode(src: &[f32], dst: &mut [u8]) {
    encode_blocks::<32, 22>(src, dst, |x, b| {
        let d = extreme(x) / -16.0;
        let inverse = inverse(d);
        put_half(b, 0, d);
        let codes = std::array::from_fn(|i| ((x[i] * inverse + 16.5) as u8).min(31));
        b[2..6].copy_from_slice(&fifth_bits(&codes));
        put_nibbles(&codes, &mut b[6..]);
    });
}
