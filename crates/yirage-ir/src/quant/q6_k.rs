//! Q6_K: 256 weights in 210 bytes: 128 bytes of low nibbles, 64 bytes of 2-bit high parts, 16 signed scales (one a 16
//! weights), f16 `d`; weight = d * scale * (code - 32). Of each 128 weights, low byte l of 64 holds weights l (low)
//! and l+64 (high), high byte l of 32 holds weights l, l+32, l+64, l+96 from the low bits up.

use super::FormatInfo;
use super::blocks::{each_block, half_at};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q6_k", block: 256, bytes: 210, ggml_type: 14, decode, encode: None };

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<256, 210>(src, dst, |b, out| {
        let d = half_at(b, 208);
        for (i, o) in out.iter_mut().enumerate() {
            let (n, c, l) = (i / 128, i % 128 / 32, i % 32);
            let low = b[n * 64 + c % 2 * 32 + l] >> (c / 2 * 4) & 15;
            let code = low | (b[128 + n * 32 + l] >> (2 * c) & 3) << 4;
            *o = d * f32::from(b[192 + i / 16] as i8) * (f32::from(code) - 32.0);
        }
    });
}
