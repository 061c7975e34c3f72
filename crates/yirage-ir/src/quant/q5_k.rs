//! Q5_K: 256 weights in 176 bytes: as Q4_K, with 32 bytes of fifth bits before the nibbles (byte l: bit j is that of
//! weight 32j + l).

use super::FormatInfo;
use super::blocks::{each_block, half_at, scale_min};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q5_k", block: 256, bytes: 176, ggml_type: 13, decode, encode: None };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<256, 176>(src, dst, |b, out| {
        let (d, dmin) = (half_at(b, 0), half_at(b, 2));
        for (j, sub) in out.chunks_exact_mut(32).enumerate() {
            let (scale, min) = scale_min(&b[4..16], j);
            let (d, m) = (d * f32::from(scale), dmin * f32::from(min));
            for (l, o) in sub.iter_mut().enumerate() {
                let low = b[48 + j / 2 * 32 + l] >> (j % 2 * 4) & 15;
                *o = d * f32::from(low | (b[16 + l] >> j & 1) << 4) - m;
            }
        }
    });
}
