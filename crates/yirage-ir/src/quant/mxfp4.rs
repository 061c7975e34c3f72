//! MXFP4 (OCP Microscaling Formats 1.0): 32 weights in 17 bytes: one E8M0 exponent, nibbles as Q4_0 holding E2M1
//! values; weight = 2^(e - 127) * value, computed as 2^(e - 128) times the doubled, integral value.

use super::FormatInfo;
use super::blocks::{each_block, encode_blocks, extreme, put_nibbles};

/// Twice the E2M1 values of the codes.
pub const TABLE: [i8; 16] = [0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12];

pub(super) const INFO: FormatInfo =
    FormatInfo { name: "mxfp4", block: 32, bytes: 17, ggml_type: 39, decode, encode: Some(encode) };

/// 2^(e - 128) for an E8M0 exponent, exact down to the denormals.
pub fn half_scale(e: u8) -> f32 {
    if e < 2 { f32::from_bits(0x0020_0000 << e) } else { f32::from_bits((u32::from(e) - 1) << 23) }
}

fn decode(src: &[u8], dst: &mut [f32]) {
    each_block::<32, 17>(src, dst, |b, out| {
        let d = half_scale(b[0]);
        for (i, q) in b[1..].iter().enumerate() {
            out[i] = d * f32::from(TABLE[usize::from(q & 15)]);
            out[i + 16] = d * f32::from(TABLE[usize::from(q >> 4)]);
        }
    });
}

/// The exponent puts the block's largest magnitude between 4 and 8 steps of 1; each value takes the nearest code, the
/// lower one of equals.
fn encode(src: &[f32], dst: &mut [u8]) {
    encode_blocks::<32, 17>(src, dst, |x, b| {
        let largest = extreme(x).abs();
        let e = if largest > 0.0 { (largest.log2().floor() - 2.0 + 127.0) as u8 } else { 0 };
        let scale = half_scale(e);
        let nearest = |v: f32| {
            let error = |code: usize| (scale * f32::from(TABLE[code]) - v).abs();
            (0..16).fold(0, |best, code| if error(code) < error(best) { code } else { best }) as u8
        };
        b[0] = e;
        put_nibbles(&std::array::from_fn(|i| nearest(x[i])), &mut b[1..]);
    });
}
