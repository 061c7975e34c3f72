//! How stored values become sixteen floats, and floats stored values.

use super::BLOCK;
use crate::simd::{LANES, Lanes};

/// Elements of a key or value that share a scale, where they do.
pub(super) const SCALE_GROUP: usize = 32;

/// A storage type. Its tiles are `[rows][16]`, read two rows at a time.
///
/// # Safety
/// Of the methods with addresses: a tile of this type is there, and has the rows.
pub(super) trait KvElement {
    /// Bytes of a value.
    const BYTES: usize;
    /// Whether what the tiles hold are codes, to be multiplied by scales that follow the tiles: f16,
    /// `[width / 32][32 positions]`.
    const SCALED: bool = false;
    /// Bytes of two rows.
    const PAIR: usize = 2 * LANES * Self::BYTES;
    /// Two rows of a tile.
    unsafe fn pair<V: Lanes>(p: *const u8) -> (V, V);
    /// Writes the value of a row and column of the tile at `tile`.
    unsafe fn put(tile: *mut u8, row: usize, column: usize, x: f32);
}

/// A storage type with scales.
pub(super) trait QuantizedKvElement: KvElement {
    /// Makes codes of 32 elements, and says their scale.
    fn encode(x: &mut [f32; SCALE_GROUP]) -> u16;
}

/// The scales of sixteen positions from `at` on, of the `group`th 32 elements of a part of `width` elements that
/// begins at `part`.
///
/// # Safety
/// The part has tiles of BLOCK positions and their scales; `group` and `at` are among them.
#[inline(always)]
pub(super) unsafe fn scales<V: Lanes, C: KvElement>(part: *const u8, width: usize, group: usize, at: usize) -> V {
    // SAFETY: `scales` is promised the part; `AttentionCall::check` has checked the call.
    unsafe { V::load_f16(part.add(BLOCK * width * C::BYTES).cast::<u16>().add(group * BLOCK + at)) }
}

/// f32 tiles.
pub(super) struct KvF32;
/// IEEE half tiles.
pub(super) struct KvF16;
/// bf16 tiles, two rows interleaved.
pub(super) struct KvBf16;
/// Tiles of int8 codes: Q8_0.
pub(super) struct KvQ8;

impl KvElement for KvF32 {
    const BYTES: usize = 4;
    #[inline(always)]
    unsafe fn pair<V: Lanes>(p: *const u8) -> (V, V) {
        // SAFETY: `KvElement::pair` is promised two rows; `AttentionCall::check` has checked the call.
        unsafe { (V::load(p.cast()), V::load(p.cast::<f32>().add(LANES))) }
    }
    #[inline(always)]
    unsafe fn put(tile: *mut u8, row: usize, column: usize, x: f32) {
        // SAFETY: `KvElement::put` is promised the tile; `AttentionCall::check` has checked the call.
        unsafe { tile.cast::<f32>().add(row * LANES + column).write(x) }
    }
}

impl KvElement for KvF16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn pair<V: Lanes>(p: *const u8) -> (V, V) {
        // SAFETY: `KvElement::pair` is promised two rows; `AttentionCall::check` has checked the call.
        unsafe { (V::load_f16(p.cast()), V::load_f16(p.cast::<u16>().add(LANES))) }
    }
    #[inline(always)]
    unsafe fn put(tile: *mut u8, row: usize, column: usize, x: f32) {
        // SAFETY: `KvElement::put` is promised the tile; `AttentionCall::check` has checked the call.
        unsafe { tile.cast::<u16>().add(row * LANES + column).write(half::f16::from_f32(x).to_bits()) }
    }
}

impl KvElement for KvBf16 {
    const BYTES: usize = 2;
    #[inline(always)]
    unsafe fn pair<V: Lanes>(p: *const u8) -> (V, V) {
        // SAFETY: `KvElement::pair` is promised two rows; `AttentionCall::check` has checked the call.
        unsafe { V::load_bf16_pairs(p.cast()) }
    }
    #[inline(always)]
    unsafe fn put(tile: *mut u8, row: usize, column: usize, x: f32) {
        let at = row / 2 * 2 * LANES + column * 2 + row % 2;
        // SAFETY: `KvElement::put` is promised the tile; `AttentionCall::check` has checked the call.
        unsafe { tile.cast::<u16>().add(at).write(half::bf16::from_f32(x).to_bits()) }
    }
}

impl KvElement for KvQ8 {
    const BYTES: usize = 1;
    const SCALED: bool = true;
    #[inline(always)]
    unsafe fn pair<V: Lanes>(p: *const u8) -> (V, V) {
        // SAFETY: `KvElement::pair` is promised two rows; `AttentionCall::check` has checked the call.
        unsafe { (V::load_i8(p.cast()), V::load_i8(p.add(LANES).cast())) }
    }
    #[inline(always)]
    unsafe fn put(tile: *mut u8, row: usize, column: usize, x: f32) {
        // SAFETY: `KvElement::put` is promised the tile; `AttentionCall::check` has checked the call.
        unsafe { tile.add(row * LANES + column).write(x as i8 as u8) }
    }
}

impl QuantizedKvElement for KvQ8 {
    /// As the format's own encoder does, bit for bit, without a call an element.
    fn encode(x: &mut [f32; SCALE_GROUP]) -> u16 {
        let largest = x.iter().fold(0f32, |best, v| if v.abs() > best { v.abs() } else { best });
        let scale = largest / 127.0;
        let inverse = if scale == 0.0 { 0.0 } else { 1.0 / scale };
        for v in x.iter_mut() {
            // To the nearest, halves away from zero: the fraction of so small a number is exact.
            let y = *v * inverse;
            let whole = y as i32 as f32;
            let rest = y - whole;
            *v = whole + f32::from(i8::from(rest >= 0.5) - i8::from(rest <= -0.5));
        }
        half::f16::from_f32(scale).to_bits()
    }
}
