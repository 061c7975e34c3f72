//! Q2_K: 16 sub-blocks of 16 numbers in two bits, with scales and minimums of four bits.

use super::fit::{ScaleSteps, nearest, positive, with_minimum};
use super::{mean_square, put_half, weighted};

const PLAIN: ScaleSteps = ScaleSteps { from: -0.5, by: 0.1, steps: 15, absolute: true, bounded: false };
const IMPORTANT: ScaleSteps = super::simple::IMPORTANT;

/// Scales and minimums of the sub-blocks, as codes of four bits and as what a reader multiplies them with.
struct SubBlocks {
    scales: [u8; 16],
    minimums: [u8; 16],
    scale: f32,
    minimum: f32,
}

pub(super) fn encode(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]) {
    for (i, (x, block)) in row.chunks_exact(256).zip(out.chunks_exact_mut(84)).enumerate() {
        let mut levels = [0; 256];
        let found = match importances {
            None => found(x, &mut levels),
            Some(all) => found_by(x, &all[i * 256..][..256], &mut levels),
        };
        let (scale, minimum) = (put_half(block, 80, found.scale), put_half(block, 82, found.minimum));
        for (j, (x, levels)) in x.chunks_exact(16).zip(levels.chunks_exact_mut(16)).enumerate() {
            block[j] = found.scales[j] | found.minimums[j] << 4;
            let scale = scale * f32::from(found.scales[j] & 15);
            if scale != 0.0 {
                let minimum = minimum * f32::from(found.minimums[j] & 15);
                levels.iter_mut().zip(x).for_each(|(l, v)| *l = nearest((v + minimum) / scale).clamp(0, 3) as u8);
            }
        }
        put_pairs(&levels, &mut block[16..80]);
    }
}

/// The largest scale is 15.
fn found(x: &[f32], levels: &mut [u8; 256]) -> SubBlocks {
    let (mut scales, mut minimums) = ([0.0; 16], [0.0; 16]);
    for (j, (x, levels)) in x.chunks_exact(16).zip(levels.chunks_exact_mut(16)).enumerate() {
        let weights: [f32; 16] = std::array::from_fn(|i| x[i].abs());
        (scales[j], minimums[j]) = with_minimum(3, x, &weights, PLAIN, levels);
    }
    let (scale_codes, scale) = of_largest(&scales);
    let (minimum_codes, minimum) = of_largest(&minimums);
    SubBlocks { scales: scale_codes, minimums: minimum_codes, scale, minimum }
}

fn of_largest(values: &[f32; 16]) -> ([u8; 16], f32) {
    let largest = values.iter().fold(0.0, |best: f32, &v| if v > best { v } else { best });
    if largest <= 0.0 {
        return ([0; 16], 0.0);
    }
    let inverse = 15.0 / largest;
    (values.map(|v| nearest(inverse * v) as u8), largest / 15.0)
}

fn found_by(x: &[f32], importances: &[f32], levels: &mut [u8; 256]) -> SubBlocks {
    let variance = mean_square(x);
    let (mut scales, mut minimums, mut weight) = ([0.0; 16], [0.0; 16], [0.0; 16]);
    for (j, (x, levels)) in x.chunks_exact(16).zip(levels.chunks_exact_mut(16)).enumerate() {
        let weights: [f32; 16] = weighted(x, &importances[j * 16..], variance);
        weight[j] = weights.iter().fold(0.0, |sum: f32, w| sum + w);
        (scales[j], minimums[j]) = with_minimum(3, x, &weights, IMPORTANT, levels);
    }
    let (mut scale_codes, mut minimum_codes) = ([0; 16], [0; 16]);
    let scale = positive(15, &scales, &weight, &mut scale_codes);
    let minimum = positive(15, &minimums, &weight, &mut minimum_codes);
    SubBlocks { scales: scale_codes, minimums: minimum_codes, scale, minimum }
}

/// Two bits each: byte l of 32 holds levels l, l + 32, l + 64 and l + 96 of each 128.
pub(super) fn put_pairs(levels: &[u8; 256], out: &mut [u8]) {
    for (levels, out) in levels.chunks_exact(128).zip(out.chunks_exact_mut(32)) {
        for (l, o) in out.iter_mut().enumerate() {
            *o = levels[l] | levels[l + 32] << 2 | levels[l + 64] << 4 | levels[l + 96] << 6;
        }
    }
}
