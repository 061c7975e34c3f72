//! bfloat16: the upper half of an IEEE 754 binary32.

use super::FormatInfo;
use half::bf16;

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "bf16", block: 1, bytes: 2, ggml_type: 30, decode, encode: Some(encode) };

fn decode(src: &[u8], dst: &mut [f32]) {
    for (b, d) in src.chunks_exact(2).zip(dst) {
        *d = bf16::from_le_bytes([b[0], b[1]]).to_f32();
    }
}

fn encode(src: &[f32], dst: &mut [u8]) {
    for (s, d) in src.iter().zip(dst.chunks_exact_mut(2)) {
        d.copy_from_slice(&bf16::from_f32(*s).to_le_bytes());
    }
}
