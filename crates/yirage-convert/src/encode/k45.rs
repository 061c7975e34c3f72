//! Q4_K and Q5_K: eight sub-blocks of 32 numbers, with scales and minimums of six bits.

use super::fit::{ScaleSteps, nearest, positive, with_minimum};
use super::{mean_square, put_half, weighted};

const FOUR: ScaleSteps = ScaleSteps { from: -1.0, by: 0.1, steps: 20, absolute: false, bounded: false };
const FIVE: ScaleSteps = ScaleSteps { from: -0.5, by: 0.1, steps: 15, absolute: false, bounded: false };
const IMPORTANT: ScaleSteps = super::simple::IMPORTANT;

pub(super) fn four_bits(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]) {
    for (i, (x, block)) in row.chunks_exact(256).zip(out.chunks_exact_mut(144)).enumerate() {
        let importances = importances.map(|all| &all[i * 256..][..256]);
        let levels = sub_blocks(x, importances, 15, FOUR, &mut block[..16]);
        put_nibbles(&levels, &mut block[16..]);
    }
}

pub(super) fn five_bits(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]) {
    for (i, (x, block)) in row.chunks_exact(256).zip(out.chunks_exact_mut(176)).enumerate() {
        let importances = importances.map(|all| &all[i * 256..][..256]);
        let levels = sub_blocks(x, importances, 31, FIVE, &mut block[..16]);
        block[16..48].fill(0);
        for (i, level) in levels.iter().enumerate() {
            block[16 + i % 32] |= (level >> 4 & 1) << (i / 32);
        }
        put_nibbles(&levels, &mut block[48..]);
    }
}

/// Writes scales and minimums, and gives the levels that are nearest with what a reader makes of them.
fn sub_blocks(x: &[f32], importances: Option<&[f32]>, top: u8, steps: ScaleSteps, out: &mut [u8]) -> [u8; 256] {
    let mut levels = [0; 256];
    let ((scales, scale), (minimums, minimum)) = match importances {
        None => found(x, top, steps, &mut levels),
        Some(importances) => found_by(x, importances, top, &mut levels),
    };
    let (scale, minimum) = (put_half(out, 0, scale), put_half(out, 2, minimum));
    put_six_bits(&scales, &minimums, &mut out[4..]);
    for (j, (x, levels)) in x.chunks_exact(32).zip(levels.chunks_exact_mut(32)).enumerate() {
        let scale = scale * f32::from(scales[j]);
        if scale != 0.0 {
            let minimum = minimum * f32::from(minimums[j]);
            levels.iter_mut().zip(x).for_each(|(l, v)| *l = nearest((v + minimum) / scale).clamp(0, top.into()) as u8);
        }
    }
    levels
}

/// Codes of the sub-blocks, and what they are multiplied with.
type SixBits = ([u8; 8], f32);

/// The largest scale is 63, and so is the largest minimum.
fn found(x: &[f32], top: u8, steps: ScaleSteps, levels: &mut [u8; 256]) -> (SixBits, SixBits) {
    let (mut scales, mut minimums) = ([0.0; 8], [0.0; 8]);
    for (j, (x, levels)) in x.chunks_exact(32).zip(levels.chunks_exact_mut(32)).enumerate() {
        let usual = mean_square(x).sqrt();
        let weights: [f32; 32] = std::array::from_fn(|i| usual + x[i].abs());
        (scales[j], minimums[j]) = with_minimum(top, x, &weights, steps, levels);
    }
    (of_largest(&scales), of_largest(&minimums))
}

fn of_largest(values: &[f32; 8]) -> SixBits {
    let largest = values.iter().fold(0.0, |best: f32, &v| if v > best { v } else { best });
    let inverse = if largest > 0.0 { 63.0 / largest } else { 0.0 };
    (values.map(|v| (nearest(inverse * v) as u8).min(63)), largest / 63.0)
}

fn found_by(x: &[f32], importances: &[f32], top: u8, levels: &mut [u8; 256]) -> (SixBits, SixBits) {
    let variance = 2.0 * mean_square(x);
    let (mut scales, mut minimums, mut weight) = ([0.0; 8], [0.0; 8], [0.0; 8]);
    for (j, (x, levels)) in x.chunks_exact(32).zip(levels.chunks_exact_mut(32)).enumerate() {
        let weights: [f32; 32] = weighted(x, &importances[j * 32..], variance);
        weight[j] = weights.iter().fold(0.0, |sum: f32, w| sum + w);
        (scales[j], minimums[j]) = with_minimum(top, x, &weights, IMPORTANT, levels);
    }
    let by_weight = |values: &[f32; 8]| {
        let mut codes = [0; 8];
        let scale = positive(63, values, &weight, &mut codes);
        (codes, scale)
    };
    (by_weight(&scales), by_weight(&minimums))
}

/// Twelve bytes: those of the first four sub-blocks whole, of the others four bits, whose rest lies above the first ones'.
fn put_six_bits(scales: &[u8; 8], minimums: &[u8; 8], out: &mut [u8]) {
    for j in 0..4 {
        (out[j], out[j + 4]) = (scales[j], minimums[j]);
    }
    for j in 4..8 {
        out[j + 4] = scales[j] & 15 | (minimums[j] & 15) << 4;
        out[j - 4] |= scales[j] >> 4 << 6;
        out[j] |= minimums[j] >> 4 << 6;
    }
}

/// Of each 64 levels byte l of 32: the low four bits of level l, and of level l + 32.
fn put_nibbles(levels: &[u8; 256], out: &mut [u8]) {
    for (levels, out) in levels.chunks_exact(64).zip(out.chunks_exact_mut(32)) {
        out.iter_mut().enumerate().for_each(|(l, o)| *o = levels[l] & 15 | levels[l + 32] << 4);
    }
}
