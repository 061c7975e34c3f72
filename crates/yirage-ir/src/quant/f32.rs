//! IEEE 754 binary32.

use super::FormatInfo;

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "f32", block: 1, bytes: 4, ggml_type: 0, decode, encode: Some(encode) };

fn decode(src: &[u8], dst: &mut [f32]) {
    for (b, d) in src.chunks_exact(4).zip(dst) {
        *d = f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
    }
}

fn encode(src: &[f32], dst: &mut [u8]) {
    for (s, d) in src.iter().zip(dst.chunks_exact_mut(4)) {
        d.copy_from_slice(&s.to_le_bytes());
    }
}
