//! How a stored value becomes sixteen floats, and one float a stored value.

use crate::simd::{LANES, Lanes};

/// A storage type. Its tiles are `[rows][16]`, read two rows at a time.
pub(super) trait Cell {
    /// Bytes of a value.
    const BYTES: usize;
    /// Bytes of two rows.
    const PAIR: usize = 2 * LANES * Self::BYTES;
    /// Two rows of a tile.
    unsafe fn pair<V: Lanes>(p: *const u8) -> (V, V);
    /// Writes the value of a row and column of the tile at `tile`.
    unsafe fn put(tile: *mut u8, row: usize, column: usize, x: f32);
}

/// f32 tiles.
pub(super) struct F32;
/// IEEE half tiles.
pub(super) struct F16;
/// bf16 tiles, two rows interleaved.
pub(super) struct Bf16;

impl Cell for F32 {
    const BYTES: usize = 4;
    #[inline(always)]
    unsafe fn pair<V: Lanes>(p: *const u8) -> (V, V) {
        // SAFETY: the caller vouches for two rows.
        unsafe { (V::load(p.cast()), V::load(p.cast::<f32>().add(LANES))) }
    }
    #[inline(always)]
    unsafe fn put(tile: *mut u8, row: usize, column: usize, x: f32) {
        // SAFETY: the caller vouches for the tile.
        unsafe { tile.cast::<f32>().add(row * LANES + column).write(x) }
    }
}

impl Cell for F16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn pair<V: Lanes>(p: *const u8) -> (V, V) {
        // SAFETY: the caller vouches for two rows.
        unsafe { (V::load_f16(p.cast()), V::load_f16(p.cast::<u16>().add(LANES))) }
    }
    #[inline(always)]
    unsafe fn put(tile: *mut u8, row: usize, column: usize, x: f32) {
        // SAFETY: the caller vouches for the tile.
        unsafe { tile.cast::<u16>().add(row * LANES + column).write(half::f16::from_f32(x).to_bits()) }
    }
}

impl Cell for Bf16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn pair<V: Lanes>(p: *const u8) -> (V, V) {
        // SAFETY: the caller vouches for two rows.
        unsafe { V::load_bf16_pairs(p.cast()) }
    }
    #[inline(always)]
    unsafe fn put(tile: *mut u8, row: usize, column: usize, x: f32) {
        let at = row / 2 * 2 * LANES + column * 2 + row % 2;
        // SAFETY: the caller vouches for the tile.
        unsafe { tile.cast::<u16>().add(at).write(half::bf16::from_f32(x).to_bits()) }
    }
}
