//! Codes packed into words of 32 bits, the first in the lowest bits.

/// Word `at` of a part.
pub(super) fn word(part: &[u8], at: usize) -> u32 {
    let b = &part[4 * at..][..4];
    u32::from_le_bytes([b[0], b[1], b[2], b[3]])
}

/// The code of `bits` bits that is number `at` of a word.
pub(super) fn code(word: u32, bits: u32, at: usize) -> i16 {
    (word >> (bits * at as u32) & ((1 << bits) - 1)) as i16
}
