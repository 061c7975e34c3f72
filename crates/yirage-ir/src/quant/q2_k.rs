//! Q2_K: 256 weights in 84 bytes: 16 bytes of scales (low nibble scale, high nibble minimum, one a 16 weights),
//! 64 bytes of 2-bit codes, f16 `d`, f16 `dmin`; weight = d * scale * code - dmin * min. Codes: of each 128 weights,
//! byte l of 32 holds weights l, l+32, l+64, l+96 from the low bits up.

use super::FormatInfo;
use super::blocks::{each_block, half_at};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q2_k", block: 256, bytes: 84, ggml_type: 10, decode, encode: None };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<256, 84>(src, dst, |b, out| {
        let (d, dmin) = (half_at(b, 80), half_at(b, 82));
        for (i, o) in out.iter_mut().enumerate() {
            let code = b[16 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
            let s = b[i / 16];
            *o = d * f32::from(s & 15) * f32::from(code) - dmin * f32::from(s >> 4);
        }
    });
}
