//! IQ4_NL and IQ4_XS: levels from a table of sixteen values; the first with a scale for each 32 numbers, the second with
//! eight scales of six bits for 256.

use super::fit::{SMALLEST, extreme, nearest};
use super::simple::put_nibbles;
use super::{put_half, weighted};
use yirage_ir::quant::iq4_nl::TABLE;

/// How far from the largest value's own scale others are tried, in levels of the lowest value.
const TRIES: i32 = 7;

pub(super) fn iq4_nl(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]) {
    for (i, (x, block)) in row.chunks_exact(32).zip(out.chunks_exact_mut(18)).enumerate() {
        let scale = scale(x, importances.map(|all| &all[i * 32..][..32]), sum_of_squares(x) * (2.0 / 32.0));
        put_half(block, 0, scale);
        let inverse = if scale != 0.0 { 1.0 / scale } else { 0.0 };
        let levels: [u8; 32] = std::array::from_fn(|i| closest(inverse * x[i]));
        put_nibbles(&levels, &mut block[2..]);
    }
}

pub(super) fn iq4_xs(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]) {
    for (i, (x, block)) in row.chunks_exact(256).zip(out.chunks_exact_mut(136)).enumerate() {
        let variance = sum_of_squares(x) * (2.0 / 256.0);
        let mut scales = [0.0f32; 8];
        for (j, x) in x.chunks_exact(32).enumerate() {
            scales[j] = scale(x, importances.map(|all| &all[i * 256 + j * 32..][..32]), variance);
        }
        let largest = extreme(&scales);
        let step = -largest / 32.0;
        put_half(block, 0, step);
        block[2..8].fill(0);
        let inverse = if step != 0.0 { 1.0 / step } else { 0.0 };
        for (j, x) in x.chunks_exact(32).enumerate() {
            let code = nearest(inverse * scales[j]).clamp(-32, 31);
            let scale = step * code as f32;
            let inverse = if scale != 0.0 { 1.0 / scale } else { 0.0 };
            let levels: [u8; 32] = std::array::from_fn(|i| closest(inverse * x[i]));
            put_nibbles(&levels, &mut block[8 + j * 16..]);
            put_code((code + 32) as u8, j, &mut block[2..8]);
        }
    }
}

/// The high two bits of eight codes in two bytes, the low four in four bytes.
fn put_code(code: u8, j: usize, out: &mut [u8]) {
    out[j / 4] |= (code >> 4) << (j % 4 * 2);
    out[2 + j / 2] |= (code & 15) << (j % 2 * 4);
}

fn sum_of_squares(x: &[f32]) -> f32 {
    x.iter().fold(0.0, |sum: f32, v| sum + v * v)
}

/// The scale of 32 numbers whose weighted error is small.
fn scale(x: &[f32], importances: Option<&[f32]>, variance: f32) -> f32 {
    let weights: [f32; 32] = match importances {
        Some(importances) => weighted(x, importances, variance),
        None => std::array::from_fn(|i| x[i] * x[i]),
    };
    let largest = extreme(x);
    if largest.abs() < SMALLEST {
        return 0.0;
    }
    let lowest = f32::from(TABLE[0]);
    let sums = |inverse: f32| {
        x.iter().zip(weights).fold((0.0, 0.0), |(qx, qq): (f32, f32), (&v, w)| {
            let q = f32::from(TABLE[usize::from(closest(inverse * v))]);
            (qx + w * q * v, qq + w * q * q)
        })
    };
    let (qx, qq) = sums(1.0 / (-largest / lowest));
    let mut scale = if qq > 0.0 { qx / qq } else { 0.0 };
    let mut best = scale * qx;
    for tried in -TRIES..=TRIES {
        let (qx, qq) = sums((tried + i32::from(TABLE[0])) as f32 / largest);
        if qq > 0.0 && qx * qx > best * qq {
            scale = qx / qq;
            best = scale * qx;
        }
    }
    scale
}

/// The level whose value is closest; between two, the lower one only if it is closer.
fn closest(value: f32) -> u8 {
    let last = TABLE.len() - 1;
    if value <= f32::from(TABLE[0]) {
        return 0;
    }
    if value >= f32::from(TABLE[last]) {
        return last as u8;
    }
    let above = TABLE.iter().position(|&t| value < f32::from(t)).unwrap_or(last).max(1);
    let (low, high) = (f32::from(TABLE[above - 1]), f32::from(TABLE[above]));
    (if value - low < high - value { above - 1 } else { above }) as u8
}
