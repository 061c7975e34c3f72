//! Q8_0: 32 weights in 34 bytes: f16 scale `d`, 32 signed codes; weight = d * code.

use super::FormatInfo;
use super::blocks::{each_block, encode_blocks, extreme, half_at, inverse, put_half};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q8_0", block: 32, bytes: 34, ggml_type: 8, decode, encode: Some(encode) };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<32, 34>(src, dst, |b, out| {
        let d = half_at(b, 0);
        for (o, &q) in out.iter_mut().zip(&b[2..]) {
            *o = d * f32::from(q as i8);
        }
    });
}

fn encode(src: &[f32], dst: &mut [u8]) {
    encode_blocks::<32, 34>(src, dst, |x, b| {
        let d = extreme(x).abs() / 127.0;
        let inverse = inverse(d);
        put_half(b, 0, d);
        for (code, v) in b[2..].iter_mut().zip(x) {
            *code = (v * inverse).round() as i8 as u8;
        }
    });
}
