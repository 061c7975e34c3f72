//! Q6_K: 16 sub-blocks of 16 numbers in six bits, with signed scales of eight bits.

use super::fit::{SMALLEST, extreme, nearest, symmetric};
use super::put_half;

pub(super) fn encode(row: &[f32], importances: Option<&[f32]>, out: &mut [u8]) {
    for (i, (x, block)) in row.chunks_exact(256).zip(out.chunks_exact_mut(210)).enumerate() {
        one(x, importances.map(|all| &all[i * 256..][..256]), block);
    }
}

fn one(x: &[f32], importances: Option<&[f32]>, block: &mut [u8]) {
    let (mut levels, mut scales) = ([0; 256], [0.0f32; 16]);
    for (j, (x, levels)) in x.chunks_exact(16).zip(levels.chunks_exact_mut(16)).enumerate() {
        scales[j] = symmetric(32, x, importances.map(|all| &all[j * 16..][..16]), levels);
    }
    let largest = extreme(&scales);
    if largest.abs() < SMALLEST {
        return block.fill(0);
    }
    let inverse = -128.0 / largest;
    let scale = put_half(block, 208, 1.0 / inverse);
    for (j, (x, levels)) in x.chunks_exact(16).zip(levels.chunks_exact_mut(16)).enumerate() {
        let code = nearest(inverse * scales[j]).min(127) as i8;
        block[192 + j] = code as u8;
        let scale = scale * f32::from(code);
        if scale != 0.0 {
            levels.iter_mut().zip(x).for_each(|(l, v)| *l = (nearest(v / scale).clamp(-32, 31) + 32) as u8);
        }
    }
    let (low, high) = block[..192].split_at_mut(128);
    for (levels, (low, high)) in levels.chunks_exact(128).zip(low.chunks_exact_mut(64).zip(high.chunks_exact_mut(32))) {
        for l in 0..32 {
            let [a, b, c, d] = [levels[l], levels[l + 32], levels[l + 64], levels[l + 96]];
            low[l] = a & 15 | c << 4;
            low[l + 32] = b & 15 | d << 4;
            high[l] = a >> 4 | b >> 4 << 2 | c >> 4 << 4 | d >> 4 << 6;
        }
    }
}
