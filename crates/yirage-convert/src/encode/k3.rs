//! Q3_K: 16 sub-blocks of 16 numbers in three bits, with signed scales of six bits.

use super::fit::{extreme, nearest, symmetric, symmetric_by_moves};
use super::k2::put_pairs;
use super::{mean_square, put_half, weighted};

pub(super) fn encode(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]) {
    for (i, (x, block)) in row.chunks_exact(256).zip(out.chunks_exact_mut(110)).enumerate() {
        let mut levels = [0; 256];
        let (codes, scale) = match importances {
            None => found(x, &mut levels),
            Some(all) => found_by(x, &all[i * 256..][..256], &mut levels),
        };
        let scale = put_half(block, 108, scale);
        put_scales(&codes, &mut block[96..108]);
        for (j, (x, levels)) in x.chunks_exact(16).zip(levels.chunks_exact_mut(16)).enumerate() {
            let scale = scale * (i32::from(codes[j]) - 32) as f32;
            if scale != 0.0 {
                levels.iter_mut().zip(x).for_each(|(l, v)| *l = (nearest(v / scale).clamp(-4, 3) + 4) as u8);
            }
        }
        put_third_bits(&mut levels, &mut block[..32]);
        put_pairs(&levels, &mut block[32..96]);
    }
}

/// Scales of the sub-blocks in six bits, 32 for none, and what they are multiplied with.
fn found(x: &[f32], levels: &mut [u8; 256]) -> ([u8; 16], f32) {
    let mut scales = [0.0f32; 16];
    for (j, (x, levels)) in x.chunks_exact(16).zip(levels.chunks_exact_mut(16)).enumerate() {
        scales[j] = symmetric_by_moves(4, x, levels);
    }
    let largest = extreme(&scales);
    if largest == 0.0 {
        // No code is written at all, which a reader takes for the lowest.
        return ([0; 16], 0.0);
    }
    let inverse = -32.0 / largest;
    (scales.map(|v| (i32::from(nearest(inverse * v) as i8).clamp(-32, 31) + 32) as u8), 1.0 / inverse)
}

fn found_by(x: &[f32], importances: &[f32], levels: &mut [u8; 256]) -> ([u8; 16], f32) {
    let variance = 2.0 * mean_square(x);
    let (mut scales, mut weight) = ([0.0; 16], [0.0; 16]);
    for (j, (x, levels)) in x.chunks_exact(16).zip(levels.chunks_exact_mut(16)).enumerate() {
        let weights: [f32; 16] = weighted(x, &importances[j * 16..], variance);
        weight[j] = weights.iter().fold(0.0, |sum: f32, w| sum + w);
        scales[j] = symmetric(4, x, Some(&weights), levels);
    }
    let mut codes = [0; 16];
    let scale = symmetric(32, &scales, Some(&weight), &mut codes);
    (codes, scale)
}

/// Low four bits in eight bytes, those of the second half above those of the first; the high two in four bytes.
fn put_scales(codes: &[u8; 16], out: &mut [u8]) {
    out.fill(0);
    for (j, code) in codes.iter().enumerate() {
        out[j % 8] |= (code & 15) << (j / 8 * 4);
        out[8 + j % 4] |= (code >> 4) << (j / 4 * 2);
    }
}

/// Takes the third bit out of the levels: bit k of byte m is that of level 32 k + m.
fn put_third_bits(levels: &mut [u8; 256], out: &mut [u8]) {
    out.fill(0);
    for (i, level) in levels.iter_mut().enumerate() {
        out[i % 32] |= (*level >> 2 & 1) << (i / 32);
        *level &= 3;
    }
}
