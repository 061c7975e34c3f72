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
