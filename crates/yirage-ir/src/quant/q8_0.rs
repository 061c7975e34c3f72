//! Q8_0: 32 weights in 34 bytes: f16 scale `d`, 32 signed codes; weight = d * code.

use super::FormatInfo;
use super::blocks::{each_block, half_at};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q8_0", block: 32, bytes: 34, ggml_type: 8, decode, encode: None };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<32, 34>(src, dst, |b, out| {
        let d = half_at(b, 0);
        for (o, &q) in out.iter_mut().zip(&b[2..]) {
            *o = d * f32::from(q as i8);
        }
    });
}
