//! Where the codes of a 32-block of 16 rows lie in a tile, shared by the packed formats.
//!
//! k-group `g` of a block is k = 4g..4g+4; 64 bytes hold one group of 16 rows, byte `4r + i` being row `r`, k = 4g + i.
//! * whole bytes: 8 groups, 512 bytes.
//! * nibbles: 256 bytes; 64-byte piece `i` holds group 2i in the low and 2i+1 in the high nibbles.
//! * two-bit plane: 128 bytes; piece `h` holds groups 4h..4h+4 at bits 0, 2, 4, 6.
//! * one-bit plane: 64 bytes; group `g` at bit `g`.
//!
//! `put_*` write one row from `[u32; 8]`, a word per group; `*_pair` read the groups 2i and 2i+1 of all rows.

use crate::linear::lanes::Lanes;

fn put_word(dst: &mut [u8], piece: usize, row: usize, word: u32) {
    let at = piece * 64 + row * 4;
    dst[at..at + 4].copy_from_slice(&word.to_le_bytes());
}

/// The low `N` bits at bit `shift` of every byte.
fn low(word: u32, shift: u32, mask: u8) -> u32 {
    word >> shift & u32::from_ne_bytes([mask; 4])
}

/// Words of little-endian source bytes.
pub(super) fn words<const N: usize>(src: &[u8]) -> [u32; N] {
    std::array::from_fn(|i| u32::from_le_bytes([src[4 * i], src[4 * i + 1], src[4 * i + 2], src[4 * i + 3]]))
}

/// The 32 codes of 16 bytes whose low nibbles come first (all GGUF formats with blocks of 32).
pub(super) fn split_nibbles(src: &[u8]) -> [u32; 8] {
    let w = words::<4>(src);
    std::array::from_fn(|g| low(w[g % 4], 4 * (g as u32 / 4), 0x0f))
}

/// Adds bit `i` of `bits` to code `i`, as bit 4.
pub(super) fn add_fifth_bits(codes: &mut [u32; 8], bits: u32) {
    for (g, code) in codes.iter_mut().enumerate() {
        let four = bits >> (4 * g) & 15;
        // bit i of the four to bit 8i + 4
        *code |= (four | four << 7 | four << 14 | four << 21) << 4 & 0x1010_1010;
    }
}

/// Two bytes at `2 * row`.
pub(super) fn put_half(dst: &mut [u8], row: usize, src: &[u8]) {
    dst[2 * row..2 * row + 2].copy_from_slice(&src[..2]);
}

/// Whole bytes (512).
pub(super) fn put_bytes(dst: &mut [u8], row: usize, codes: &[u32; 8]) {
    for (g, code) in codes.iter().enumerate() {
        put_word(dst, g, row, *code);
    }
}

/// Low nibbles (256 bytes).
pub(super) fn put_nibbles(dst: &mut [u8], row: usize, codes: &[u32; 8]) {
    for i in 0..4 {
        put_word(dst, i, row, low(codes[2 * i], 0, 0x0f) | low(codes[2 * i + 1], 0, 0x0f) << 4);
    }
}

/// Two bits of each code from bit `bit` (128 bytes).
pub(super) fn put_twos(dst: &mut [u8], row: usize, codes: &[u32; 8], bit: u32) {
    for h in 0..2 {
        let word = (0..4).fold(0, |a, j| a | low(codes[4 * h + j], bit, 3) << (2 * j));
        put_word(dst, h, row, word);
    }
}

/// Bit `bit` of each code (64 bytes).
pub(super) fn put_ones(dst: &mut [u8], row: usize, codes: &[u32; 8], bit: u32) {
    put_word(dst, 0, row, codes.iter().enumerate().fold(0, |a, (g, code)| a | low(*code, bit, 1) << g));
}

/// Whole bytes.
///
/// # Safety
/// 512 readable bytes at `p`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn bytes_pair<L: Lanes>(p: *const u8, i: usize) -> [L::I; 2] {
    // SAFETY: as promised by the caller.
    unsafe { [L::load(p.add(128 * i)), L::load(p.add(128 * i + 64))] }
}

/// Nibbles.
///
/// # Safety
/// 256 readable bytes at `p`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn nibbles_pair<L: Lanes>(p: *const u8, i: usize) -> [L::I; 2] {
    // SAFETY: as promised by the caller.
    unsafe {
        let v = L::load(p.add(64 * i));
        [L::field(v, 0, 4, 0), L::field(v, 4, 4, 0)]
    }
}

/// Two bits moved to bit `to`.
///
/// # Safety
/// 128 readable bytes at `p`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn twos_pair<L: Lanes>(p: *const u8, i: usize, to: u32) -> [L::I; 2] {
    // SAFETY: as promised by the caller.
    unsafe {
        let v = L::load(p.add(64 * (i / 2)));
        let from = 4 * (i as u32 % 2);
        [L::field(v, from, 2, to), L::field(v, from + 2, 2, to)]
    }
}

/// One bit moved to bit `to`.
///
/// # Safety
/// 64 readable bytes at `p`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn ones_pair<L: Lanes>(p: *const u8, i: usize, to: u32) -> [L::I; 2] {
    // SAFETY: as promised by the caller.
    unsafe {
        let v = L::load(p);
        let from = 2 * i as u32;
        [L::field(v, from, 1, to), L::field(v, from + 1, 1, to)]
    }
}

/// The groups of two planes together.
///
/// # Safety
/// The instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn join<L: Lanes>(a: [L::I; 2], b: [L::I; 2]) -> [L::I; 2] {
    // SAFETY: as promised by the caller.
    unsafe { [L::or(a[0], b[0]), L::or(a[1], b[1])] }
}
