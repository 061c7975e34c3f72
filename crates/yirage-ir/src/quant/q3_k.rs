//! Q3_K: 256 weights in 110 bytes: 32 bytes of high bits (byte l: bit j is that of weight 32j + l), 64 bytes of 2-bit
//! codes as Q2_K, 12 bytes of 6-bit scales (minus 32), f16 `d`; weight = d * (scale - 32) * (code - 4 if the high bit
//! is clear).

use super::FormatInfo;
use super::blocks::{each_block, half_at};

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "q3_k", block: 256, bytes: 110, ggml_type: 11, decode, encode: None };

/// The 6-bit scale of sub-block `j` (0 to 15), from the 12 bytes: low nibbles in bytes 0 to 7, two high bits in 8 to 11.
pub(crate) fn scale(bytes: &[u8], j: usize) -> i8 {
    let low = bytes[j % 8] >> (j / 8 * 4) & 15;
    let high = bytes[8 + j % 4] >> (j / 4 * 2) & 3;
    (low | high << 4) as i8 - 32
}

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<256, 110>(src, dst, |b, out| {
        let d = half_at(b, 108);
        for (i, o) in out.iter_mut().enumerate() {
            let code = b[32 + i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
            let high = b[i % 32] >> (i / 32) & 1;
            let q = code as i8 - if high == 0 { 4 } else { 0 };
            *o = d * f32::from(scale(&b[96..108], i / 16)) * f32::from(q);
        }
    });
}
