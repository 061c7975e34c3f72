//! Kernels in plain Rust: the fallback of every CPU, and what the others are compared with.

use super::outliers::{self, OutlierBlocks};
use super::pass::{PanelPass, Passes};
use crate::activation::{Meta, TOKEN_TILE};
use crate::pack::{BLOCK, PANEL_TILES, QuantizedTileFormat, TILE_ROWS, TileFormat, UnitScales};
use crate::simd::{ByteLanes as _, Plain};
use std::array::from_fn;

/// Kernels for f32 activations.
pub(crate) fn float_passes<F: TileFormat>() -> Passes {
    Passes { sizes: [float_pass::<F>; 5], from: 1, step: 1, panels: 1 }
}

/// Kernels for int8 activations.
pub(crate) fn quantized_passes<F: QuantizedTileFormat>() -> Passes {
    Passes { sizes: [quantized_pass::<F>; 5], from: 1, step: 1, panels: 1 }
}

/// The loop of [`super::float`] without its unrolling, which only makes this code large.
///
/// # Safety
/// As for [`super::pass::PassFn`].
unsafe fn float_pass<F: TileFormat>(p: &PanelPass) {
    let mut scales = UnitScales::new();
    let mut acc = [[[0f32; TILE_ROWS]; TOKEN_TILE]; PANEL_TILES];
    let mut w = p.w;
    for u in 0..p.units {
        for tile in &mut acc {
            // SAFETY: the unit lies in the panel.
            unsafe { F::scales::<Plain>(w, &mut scales) };
            for at in 0..F::UNIT_BLOCKS * 8 {
                let (b, g) = (at / 8, at % 8);
                // SAFETY: block and group lie in the unit.
                let weights = unsafe { F::four::<Plain>(w, b, g, &scales) }.map(Plain::registers);
                for (t, acc) in tile[..p.tokens].iter_mut().enumerate() {
                    let token = ((u * F::UNIT_BLOCKS + b) * p.stride + t) * BLOCK + 4 * g;
                    // SAFETY: the token exists.
                    let x = unsafe { p.x.cast::<f32>().add(token).cast::<[f32; 4]>().read_unaligned() };
                    for (w, x) in weights.iter().zip(x) {
                        for (acc, w) in acc.iter_mut().zip(w) {
                            *acc = w.mul_add(x, *acc);
                        }
                    }
                }
            }
            w = w.wrapping_add(F::UNIT_BYTES);
        }
    }
    // SAFETY: `put` wants what every `PassFn` is promised.
    unsafe { put(p, &acc) };
}

/// Writes the results of a panel.
///
/// # Safety
/// As for [`super::pass::PassFn`].
unsafe fn put(p: &PanelPass, acc: &[[[f32; TILE_ROWS]; TOKEN_TILE]; PANEL_TILES]) {
    for (i, tile) in acc.iter().enumerate() {
        for (t, v) in tile[..p.tokens].iter().enumerate() {
            // SAFETY: what `put` is promised; `linear` has checked panels and tokens.
            unsafe { p.put::<Plain>(i, t, *v) }
        }
    }
}

/// # Safety
/// As for [`super::pass::PassFn`].
unsafe fn quantized_pass<F: QuantizedTileFormat>(p: &PanelPass) {
    let mut scales = [const { UnitScales::new() }; PANEL_TILES];
    let mut acc = [[[0f32; TILE_ROWS]; TOKEN_TILE]; PANEL_TILES];
    let mut marked = OutlierBlocks::new(std::slice::from_ref(p));
    let mut unit = p.w;
    for u in 0..p.units {
        let mut w = unit;
        for (tile, scales) in acc.iter_mut().zip(&mut scales) {
            // SAFETY: the unit lies in the panel.
            unsafe { F::scales::<Plain>(w, scales) };
            for b in 0..F::UNIT_BLOCKS {
                let (x, metas) = p.block(u * F::UNIT_BLOCKS + b);
                // SAFETY: block and tokens exist.
                unsafe { tokens::<F>(w, b, scales, x, metas, &mut tile[..p.tokens]) };
            }
            w = w.wrapping_add(F::UNIT_BYTES);
        }
        // SAFETY: what `quantized_pass` is promised; the scales are this unit's; `linear` has checked panels and
        // tokens, `Dispatch::new` the level.
        unsafe { outliers::add::<Plain, F>(&mut marked, u, unit, &scales, &mut acc) };
        unit = w;
    }
    // SAFETY: `put` wants what every `PassFn` is promised.
    unsafe { put(p, &acc) };
}

/// Adds 32-block `b` of the unit at `w` for as many tokens as there are sums.
///
/// # Safety
/// The unit, and that many tokens of 32 numbers at `x` with their metas.
unsafe fn tokens<F: QuantizedTileFormat>(
    w: *const u8,
    b: usize,
    scales: &UnitScales,
    x: *const u8,
    metas: *const Meta,
    acc: &mut [[f32; TILE_ROWS]],
) {
    // SAFETY: what `tokens` is promised; `linear` has checked panels and tokens, `Dispatch::new` the level.
    unsafe {
        let pairs: [[[u8; 64]; 2]; 4] = from_fn(|i| F::pair::<Plain>(w, b, i));
        for (t, acc) in acc.iter_mut().enumerate() {
            let x = x.add(t * BLOCK).cast::<[i8; BLOCK]>().read_unaligned();
            block::<F>(pairs.as_flattened(), &x, &metas.add(t).read_unaligned(), scales, b, acc);
        }
    }
}

/// Exact sums of codes times activations over the groups `from..from + groups.len()`, less the offset's share.
fn dots<F: QuantizedTileFormat>(groups: &[[u8; 64]], x: &[i8], minus_sum: i32) -> [i32; TILE_ROWS] {
    let mut dot = [minus_sum * F::OFFSET; TILE_ROWS];
    for (group, x) in groups.iter().zip(x.chunks_exact(4)) {
        for (r, dot) in dot.iter_mut().enumerate() {
            for i in 0..4 {
                *dot += i32::from(group[4 * r + i]) * i32::from(x[i]);
            }
        }
    }
    dot
}

/// Adds a 32-block.
///
/// # Safety
/// `s` holds what `F` decodes.
unsafe fn block<F: QuantizedTileFormat>(
    w: &[[u8; 64]],
    x: &[i8; BLOCK],
    m: &Meta,
    s: &UnitScales,
    b: usize,
    acc: &mut [f32; TILE_ROWS],
) {
    // SAFETY: formats write the scales of all halves, and with mins the mins of all halves.
    let (scale, min) = (|i| unsafe { s.scale(i) }, |i| unsafe { s.min(i) });
    if F::HALVES == 1 {
        let dot = dots::<F>(w, x, m.minus_sum);
        for (r, acc) in acc.iter_mut().enumerate() {
            *acc = (dot[r] as f32).mul_add(scale(b)[r] * m.scale, *acc);
            if F::MINS {
                *acc = min(b)[r].mul_add(m.scaled_sum, *acc);
            }
        }
        return;
    }
    let minus = [m.minus_first, m.minus_sum - m.minus_first];
    let (first, second) = (dots::<F>(&w[..4], &x[..16], minus[0]), dots::<F>(&w[4..], &x[16..], minus[1]));
    for (r, acc) in acc.iter_mut().enumerate() {
        let mut v = (second[r] as f32).mul_add(scale(2 * b + 1)[r], first[r] as f32 * scale(2 * b)[r]);
        if F::MINS {
            v = (-min(2 * b)[r]).mul_add(minus[0] as f32, v);
            v = (-min(2 * b + 1)[r]).mul_add(minus[1] as f32, v);
        }
        *acc = v.mul_add(m.scale, *acc);
    }
}
