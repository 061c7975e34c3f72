//! Q4_K: 256 weights in 144 bytes: f16 `d`, f16 `dmin`, 12 bytes of eight 6-bit scales and minimums, 128 bytes of
//! nibbles (of each 64 weights, byte l of 32: weight l low, weight l+32 high); weight = d*scale * code - dmin*min.

use super::FormatInfo;
use super::blocks::{each_block, half_at, scale_min};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q4_k", block: 256, bytes: 144, ggml_type: 12, decode, encode: None };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<256, 144>(src, dst, |b, out| {
        let (d, dmin) = (half_at(b, 0), half_at(b, 2));
        for (j, sub) in out.chunks_exact_mut(32).enumerate() {
            let (scale, min) = scale_min(&b[4..16], j);
            let (d, m) = (d * f32::from(scale), dmin * f32::from(min));
            for (l, o) in sub.iter_mut().enumerate() {
                *o = d * f32::from(b[16 + j / 2 * 32 + l] >> (j % 2 * 4) & 15) - m;
            }
        }
    });
}
