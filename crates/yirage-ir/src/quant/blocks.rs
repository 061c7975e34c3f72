//! What block formats share: reading scales and nibbles.

use half::f16;

/// The f16 at byte `at`, as f32.
pub(super) fn half_at(block: &[u8], at: usize) -> f32 {
    f16::from_le_bytes([block[at], block[at + 1]]).to_f32()
}

/// Decodes block by block.
pub(super) fn each_block<const W: usize, const B: usize>(src: &[u8], dst: &mut [f32], one: fn(&[u8], &mut [f32])) {
    for (b, d) in src.chunks_exact(B).zip(dst.chunks_exact_mut(W)) {
        one(b, d);
    }
}

/// The six-bit scale and minimum of sub-block `j` of a Q4_K or Q5_K block, from its 12 bytes.
pub(super) fn scale_min(bytes: &[u8], j: usize) -> (u8, u8) {
    if j < 4 {
        return (bytes[j] & 63, bytes[j + 4] & 63);
    }
    let low = bytes[j + 4];
    ((low & 15) | (bytes[j - 4] >> 6 << 4), (low >> 4) | (bytes[j] >> 6 << 4))
}

/// Encodes block by block.
pub(super) fn encode_blocks<const W: usize, const B: usize>(src: &[f32], dst: &mut [u8], one: fn(&[f32], &mut [u8])) {
    for (s, b) in src.chunks_exact(W).zip(dst.chunks_exact_mut(B)) {
        one(s, b);
    }
}

/// Writes `x` as f16 at byte `at`.
pub(super) fn put_half(block: &mut [u8], at: usize, x: f32) {
    block[at..at + 2].copy_from_slice(&f16::from_f32(x).to_le_bytes());
}

/// The value of largest magnitude, the first of equals.
pub(super) fn extreme(x: &[f32]) -> f32 {
    x.iter().fold(0f32, |best, &v| if v.abs() > best.abs() { v } else { best })
}

/// Smallest and largest value.
pub(super) fn range(x: &[f32]) -> (f32, f32) {
    x.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), &v| (low.min(v), high.max(v)))
}

/// `1 / d`, or 0 for 0.
pub(super) fn inverse(d: f32) -> f32 {
    if d == 0.0 { 0.0 } else { 1.0 / d }
}

/// Codes of 32 values as nibbles: byte i holds the low four bits of codes i and i + 16.
pub(super) fn put_nibbles(codes: &[u8; 32], out: &mut [u8]) {
    for (i, o) in out.iter_mut().enumerate().take(16) {
        *o = codes[i] & 15 | codes[i + 16] << 4;
    }
}

/// The fifth bits of 32 codes, bit i for code i.
pub(super) fn fifth_bits(codes: &[u8; 32]) -> [u8; 4] {
    let bits = codes.iter().enumerate().fold(0u32, |bits, (i, c)| bits | u32::from(c >> 4 & 1) << i);
    bits.to_le_bytes()
}
