//! Q4_0: 32 weights in 18 bytes: f16 scale `d`, 16 bytes of nibbles (byte i: weight i low, weight i+16 high);
//! weight = d * (nibble - 8).

use super::FormatInfo;
use super::blocks::{each_block, encode_blocks, extreme, half_at, inverse, put_half, put_nibbles};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q4_0", block: 32, bytes: 18, ggml_type: 2, decode, encode: Some(encode) };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<32, 18>(src, dst, |b, out| {
        let d = half_at(b, 0);
        for (i, q) in b[2..].iter().enumerate() {
            out[i] = d * (f32::from(q & 15) - 8.0);
            out[i + 16] = d * (f32::from(q >> 4) - 8.0);
        }
    });
}

fn encode(src: &[f32], dst: &mut [u8]) {
    encode_blocks::<32, 18>(src, dst, |x, b| {
        let d = extreme(x) / -8.0;
        let inverse = inverse(d);
        put_half(b, 0, d);
        let codes = std::array::from_fn(|i| ((x[i] * inverse + 8.5) as u8).min(15));
        put_nibbles(&codes, &mut b[2..]);
    });
}
