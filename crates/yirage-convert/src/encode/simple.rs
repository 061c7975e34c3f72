//! Floats, and blocks of 32 with one scale and perhaps a minimum.

use super::fit::{ScaleSteps, symmetric, with_minimum};
use super::{mean_square, plain, put_half, weighted};
use yirage_ir::Format;

/// How importances choose scales of 4 and 5 bits.
pub(super) const IMPORTANT: ScaleSteps = ScaleSteps { from: -0.9, by: 0.05, steps: 36, absolute: false, bounded: true };

pub(super) fn f32(row: &[f32], _: Option<&[f32]>, out: &mut [u8]) {
    plain(Format::F32, row, out);
}

pub(super) fn f16(row: &[f32], _: Option<&[f32]>, out: &mut [u8]) {
    plain(Format::F16, row, out);
}

pub(super) fn bf16(row: &[f32], _: Option<&[f32]>, out: &mut [u8]) {
    plain(Format::BF16, row, out);
}

pub(super) fn q8_0(row: &[f32], _: Option<&[f32]>, out: &mut [u8]) {
    plain(Format::Q8_0, row, out);
}

pub(super) fn mxfp4(row: &[f32], _: Option<&[f32]>, out: &mut [u8]) {
    plain(Format::MXFP4, row, out);
}

pub(super) fn q4_0(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]) {
    let Some(importances) = importances else { return plain(Format::Q4_0, row, out) };
    blocks::<18>(row, importances, out, |x, weights, levels, block| {
        let scale = symmetric(8, x, Some(weights), levels);
        put_half(block, 0, scale);
        put_nibbles(levels, &mut block[2..]);
    });
}

pub(super) fn q4_1(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]) {
    let Some(importances) = importances else { return plain(Format::Q4_1, row, out) };
    blocks::<20>(row, importances, out, |x, weights, levels, block| {
        let (scale, minimum) = with_minimum(15, x, weights, IMPORTANT, levels);
        put_half(block, 0, scale);
        put_half(block, 2, -minimum);
        put_nibbles(levels, &mut block[4..]);
    });
}

pub(super) fn q5_0(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]) {
    let Some(importances) = importances else { return plain(Format::Q5_0, row, out) };
    blocks::<22>(row, importances, out, |x, weights, levels, block| {
        let scale = symmetric(16, x, Some(weights), levels);
        put_half(block, 0, scale);
        put_fifth_bits(levels, &mut block[2..6]);
        put_nibbles(levels, &mut block[6..]);
    });
}

pub(super) fn q5_1(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]) {
    let Some(importances) = importances else { return plain(Format::Q5_1, row, out) };
    blocks::<24>(row, importances, out, |x, weights, levels, block| {
        let (scale, minimum) = with_minimum(31, x, weights, IMPORTANT, levels);
        put_half(block, 0, scale);
        put_half(block, 2, -minimum);
        put_fifth_bits(levels, &mut block[4..8]);
        put_nibbles(levels, &mut block[8..]);
    });
}

/// Blocks of 32 numbers in `B` bytes each, by weights that know the whole row.
fn blocks<const B: usize>(
    row: &[f32],
    importances: &[f32],
    out: &mut [u8],
    one: impl Fn(&[f32], &[f32; 32], &mut [u8; 32], &mut [u8]),
) {
    let variance = mean_square(row);
    for ((x, important), block) in row.chunks_exact(32).zip(importances.chunks_exact(32)).zip(out.chunks_exact_mut(B)) {
        one(x, &weighted(x, important, variance), &mut [0; 32], block);
    }
}

/// Byte i holds the low four bits of levels i and i + 16.
pub(super) fn put_nibbles(levels: &[u8], out: &mut [u8]) {
    out.iter_mut().enumerate().take(16).for_each(|(i, o)| *o = levels[i] & 15 | levels[i + 16] << 4);
}

/// Bit i is the fifth of level i.
fn put_fifth_bits(levels: &[u8; 32], out: &mut [u8]) {
    let bits = levels.iter().enumerate().fold(0u32, |bits, (i, l)| bits | u32::from(l >> 4 & 1) << i);
    out.copy_from_slice(&bits.to_le_bytes());
}
