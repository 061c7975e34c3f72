//! Where the codes of a 32-block of 16 rows lie in a tile, shared by the packed formats.
//!
//! k-group `g` of a block is k = 4g..4g+4; 64 bytes hold one group of 16 rows, byte `4r + i` being row `r`, k = 4g + i.
//! * whole bytes: 8 groups, 512 bytes.
//! * nibbles: 256 bytes; 64-byte piece `i` holds group 2i in the low and 2i+1 in the high nibbles.
//! * two-bit plane: 128 bytes; piece `h` holds groups 4h..4h+4 at bits 0, 2, 4, 6.
//! * one-bit plane: 64 bytes; group `g` at bit `g`.
//!
//! `put_*` write all rows; `*_pair` read the groups 2i and 2i+1 of all rows.

use super::tile::{SourceBlocks, TILE_ROWS};
use crate::simd::Lanes;

/// Two bytes of each row, those at `at` of its block (32 bytes).
///
/// # Safety
/// A whole block at each of `rows`; 32 writable bytes at `dst`.
#[inline(always)]
pub(super) unsafe fn put_halves(dst: *mut u8, rows: &SourceBlocks, at: usize) {
    // SAFETY: what `put_halves` is promised; `PackedMatrix::pack_rows` has checked the rows.
    unsafe { dst.cast::<[[u8; 2]; TILE_ROWS]>().write_unaligned(rows.read(at)) }
}

/// `n` words of each row from `at` of its block, a column of 64 bytes each.
///
/// # Safety
/// A whole block at each of `rows`; `64 n` writable bytes at `dst`.
#[inline(always)]
pub(super) unsafe fn put_columns(dst: *mut u8, rows: &SourceBlocks, at: usize, n: usize) {
    for column in 0..n {
        // SAFETY: what `put_columns` is promised; `PackedMatrix::pack_rows` has checked the rows.
        unsafe { dst.add(64 * column).cast::<[[u8; 4]; TILE_ROWS]>().write_unaligned(rows.read(at + 4 * column)) }
    }
}

/// 16 bytes of each row, byte `i` of all rows at `16 i` (256 bytes).
///
/// # Safety
/// A whole block at each of `rows`; 256 writable bytes at `dst`.
#[inline(always)]
pub(super) unsafe fn put_bytes(dst: *mut u8, rows: &SourceBlocks, at: usize) {
    // SAFETY: what `put_bytes` is promised; `PackedMatrix::pack_rows` has checked the rows.
    unsafe {
        let rows = rows.read::<16>(at);
        let turned: [[u8; TILE_ROWS]; 16] = std::array::from_fn(|i| rows.map(|row| row[i]));
        dst.cast::<[[u8; TILE_ROWS]; 16]>().write_unaligned(turned);
    }
}

/// 32 bytes of each row, as whole bytes with their highest bit flipped (512 bytes).
///
/// # Safety
/// A whole block at each of `rows`; 512 writable bytes at `dst`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn put_flipped<L: Lanes>(dst: *mut u8, rows: &SourceBlocks, at: usize) {
    // SAFETY: what `put_flipped` is promised; `PackedMatrix::pack_rows` has checked the rows.
    unsafe {
        for half in 0..2 {
            for (g, word) in rows.words::<L>(at + 16 * half).into_iter().enumerate() {
                L::store_bytes(dst.add(256 * half + 64 * g), L::flip(word));
            }
        }
    }
}

/// The nibbles of 16 bytes of each row: four groups (two pieces, 128 bytes) of the low ones at `low`, four groups of the
/// high ones at `high`.
///
/// # Safety
/// A whole block at each of `rows`; 128 writable bytes at `low` and at `high`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn put_nibbles<L: Lanes>(low: *mut u8, high: *mut u8, rows: &SourceBlocks, at: usize) {
    // SAFETY: what `put_nibbles` is promised; `PackedMatrix::pack_rows` has checked the rows.
    unsafe {
        let w = rows.words::<L>(at);
        for i in 0..2 {
            let (a, b) = (w[2 * i], w[2 * i + 1]);
            L::store_bytes(low.add(64 * i), L::or_bytes(L::field(a, 0, 4, 0), L::field(b, 0, 4, 4)));
            L::store_bytes(high.add(64 * i), L::or_bytes(L::field(a, 4, 4, 0), L::field(b, 4, 4, 4)));
        }
    }
}

/// The nibbles of a block whose 16 bytes have its first 16 codes in their low halves (all file formats with blocks of
/// 32): 256 bytes.
///
/// # Safety
/// As for [`put_nibbles`]; 256 writable bytes at `dst`.
#[inline(always)]
pub(super) unsafe fn put_split_nibbles<L: Lanes>(dst: *mut u8, rows: &SourceBlocks, at: usize) {
    // SAFETY: what `put_split_nibbles` is promised; `PackedMatrix::pack_rows` has checked the rows.
    unsafe { put_nibbles::<L>(dst, dst.add(128), rows, at) }
}

/// 32 bytes of each row, a word a group.
///
/// # Safety
/// A whole block at each of `rows`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn groups<L: Lanes>(rows: &SourceBlocks, at: usize) -> [L::Bytes; 8] {
    // SAFETY: what `groups` is promised; `PackedMatrix::pack_rows` has checked the rows.
    unsafe {
        let ([a, b, c, d], [e, f, g, h]) = (rows.words::<L>(at), rows.words::<L>(at + 16));
        [a, b, c, d, e, f, g, h]
    }
}

/// Two bits of each code, from bit `from` (128 bytes).
///
/// # Safety
/// 128 writable bytes at `dst`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn put_twos<L: Lanes>(dst: *mut u8, codes: &[L::Bytes; 8], from: u32) {
    // SAFETY: what `put_twos` is promised; `PackedMatrix::pack_rows` has checked the rows.
    unsafe {
        for (h, c) in codes.chunks_exact(4).enumerate() {
            let low = L::or_bytes(L::field(c[0], from, 2, 0), L::field(c[1], from, 2, 2));
            let high = L::or_bytes(L::field(c[2], from, 2, 4), L::field(c[3], from, 2, 6));
            L::store_bytes(dst.add(64 * h), L::or_bytes(low, high));
        }
    }
}

/// Bit `bit` of each code (64 bytes).
///
/// # Safety
/// 64 writable bytes at `dst`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn put_ones<L: Lanes>(dst: *mut u8, codes: &[L::Bytes; 8], bit: u32) {
    // SAFETY: what `put_ones` is promised; `PackedMatrix::pack_rows` has checked the rows.
    unsafe {
        let mut plane = L::field(codes[0], bit, 1, 0);
        for (g, code) in codes.iter().enumerate().skip(1) {
            plane = L::or_bytes(plane, L::field(*code, bit, 1, g as u32));
        }
        L::store_bytes(dst, plane);
    }
}

/// A one-bit plane (64 bytes) from four bytes of each row that hold bit `i` for code `i`.
///
/// # Safety
/// A whole block at each of `rows`; 64 writable bytes at `dst`.
#[inline(always)]
pub(super) unsafe fn put_bits(dst: *mut u8, rows: &SourceBlocks, at: usize) {
    // SAFETY: what `put_bits` is promised; `PackedMatrix::pack_rows` has checked the rows.
    let bits = unsafe { rows.read::<4>(at) }.map(u32::from_le_bytes);
    let mut plane = [0u32; TILE_ROWS];
    for g in 0..8 {
        for (word, bits) in plane.iter_mut().zip(bits) {
            let four = bits >> (4 * g) & 15;
            // bit i of the four to the lowest bit of byte i
            *word |= ((four | four << 7 | four << 14 | four << 21) & 0x0101_0101) << g;
        }
    }
    // SAFETY: what `put_bits` is promised; `PackedMatrix::pack_rows` has checked the rows.
    unsafe { dst.cast::<[[u8; 4]; TILE_ROWS]>().write_unaligned(plane.map(u32::to_le_bytes)) }
}

/// Whole bytes.
///
/// # Safety
/// 512 readable bytes at `p`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn bytes_pair<L: Lanes>(p: *const u8, i: usize) -> [L::Bytes; 2] {
    // SAFETY: what `bytes_pair` is promised; `linear` or `unpack::row` has checked that the unit is the matrix's.
    unsafe { [L::load_bytes(p.add(128 * i)), L::load_bytes(p.add(128 * i + 64))] }
}

/// Nibbles.
///
/// # Safety
/// 256 readable bytes at `p`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn nibbles_pair<L: Lanes>(p: *const u8, i: usize) -> [L::Bytes; 2] {
    // SAFETY: what `nibbles_pair` is promised; `linear` or `unpack::row` has checked that the unit is the matrix's.
    unsafe {
        let v = L::load_bytes(p.add(64 * i));
        [L::field(v, 0, 4, 0), L::field(v, 4, 4, 0)]
    }
}

/// Two bits moved to bit `to`.
///
/// # Safety
/// 128 readable bytes at `p`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn twos_pair<L: Lanes>(p: *const u8, i: usize, to: u32) -> [L::Bytes; 2] {
    // SAFETY: what `twos_pair` is promised; `linear` or `unpack::row` has checked that the unit is the matrix's.
    unsafe {
        let v = L::load_bytes(p.add(64 * (i / 2)));
        let from = 4 * (i as u32 % 2);
        [L::field(v, from, 2, to), L::field(v, from + 2, 2, to)]
    }
}

/// One bit moved to bit `to`.
///
/// # Safety
/// 64 readable bytes at `p`; the instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn ones_pair<L: Lanes>(p: *const u8, i: usize, to: u32) -> [L::Bytes; 2] {
    // SAFETY: what `ones_pair` is promised; `linear` or `unpack::row` has checked that the unit is the matrix's.
    unsafe {
        let v = L::load_bytes(p);
        let from = 2 * i as u32;
        [L::field(v, from, 1, to), L::field(v, from + 1, 1, to)]
    }
}

/// The groups of two planes together.
///
/// # Safety
/// The instruction set of `L`.
#[inline(always)]
pub(super) unsafe fn join<L: Lanes>(a: [L::Bytes; 2], b: [L::Bytes; 2]) -> [L::Bytes; 2] {
    // SAFETY: what `join` is promised; `linear` or `unpack::row` has checked that the unit is the matrix's.
    unsafe { [L::or_bytes(a[0], b[0]), L::or_bytes(a[1], b[1])] }
}
