//! The two inner products: scores of rows against a block's keys, and rows of weights times a block's values.
//!
//! Each is a chain of fused multiply-adds per element in ascending order (of the width, of the positions), whatever the
//! number of rows worked on together.

use super::BLOCK;
use super::cell::Cell;
use crate::simd::{LANES, Lanes};

/// Scores of up to `V::ROWS` (4 or 8) rows: `out[n][32] = q[n] . keys`. `pairs` is half the padded width.
#[inline(always)]
pub(super) unsafe fn scores<V: Lanes, C: Cell>(rows: usize, k: *const u8, pairs: usize, q: *const f32, out: *mut f32) {
    // SAFETY: the caller vouches for `rows` rows of q and out and a block's keys.
    unsafe {
        match rows {
            1 => score_rows::<V, C, 1, 2>(k, pairs, q, out),
            2 => score_rows::<V, C, 2, 2>(k, pairs, q, out),
            3 => score_rows::<V, C, 3, 1>(k, pairs, q, out),
            _ if V::ROWS == 4 => score_rows::<V, C, 4, 1>(k, pairs, q, out),
            4 => score_rows::<V, C, 4, 1>(k, pairs, q, out),
            5 => score_rows::<V, C, 5, 1>(k, pairs, q, out),
            6 => score_rows::<V, C, 6, 1>(k, pairs, q, out),
            7 => score_rows::<V, C, 7, 1>(k, pairs, q, out),
            _ => score_rows::<V, C, 8, 1>(k, pairs, q, out),
        }
    }
}

/// `N` rows, `T` tiles of 16 positions at once (independent chains for few rows).
#[inline(always)]
unsafe fn score_rows<V: Lanes, C: Cell, const N: usize, const T: usize>(
    k: *const u8,
    pairs: usize,
    q: *const f32,
    out: *mut f32,
) {
    let tile = pairs * C::PAIR;
    let mut first = 0;
    while first < BLOCK / LANES {
        let mut acc = [[V::splat(0.0); T]; N];
        for j in 0..pairs {
            for t in 0..T {
                // SAFETY: the caller vouches for the block's keys and N rows of q.
                unsafe {
                    let (even, odd) = C::pair::<V>(k.add((first + t) * tile + j * C::PAIR));
                    for (n, acc) in acc.iter_mut().enumerate() {
                        let q = q.add(n * 2 * pairs + 2 * j);
                        acc[t] = even.fma(V::splat(*q), acc[t]);
                        acc[t] = odd.fma(V::splat(*q.add(1)), acc[t]);
                    }
                }
            }
        }
        for (n, acc) in acc.iter().enumerate() {
            for (t, acc) in acc.iter().enumerate() {
                // SAFETY: the caller vouches for N rows of out.
                unsafe { acc.store(out.add(n * BLOCK + (first + t) * LANES)) };
            }
        }
        first += T;
    }
}

/// The part of a block whose values are read: positions `from..to`.
#[derive(Clone, Copy)]
pub(super) struct Live {
    /// First position, rounded down to an even one.
    pub(super) from: usize,
    /// One past the last position.
    pub(super) to: usize,
}

/// Adds `weights[n][32]` times the block's values to `o[n][16 * chunks]`.
#[inline(always)]
pub(super) unsafe fn weighted<V: Lanes, C: Cell>(
    rows: usize,
    v: *const u8,
    chunks: usize,
    live: Live,
    weights: *const f32,
    o: *mut f32,
) {
    // SAFETY: the caller vouches for `rows` rows of weights and o and a block's values.
    unsafe {
        match rows {
            1 => weigh_rows::<V, C, 1, 4>(v, chunks, live, weights, o),
            2 => weigh_rows::<V, C, 2, 2>(v, chunks, live, weights, o),
            3 => weigh_rows::<V, C, 3, 1>(v, chunks, live, weights, o),
            _ if V::ROWS == 4 => weigh_rows::<V, C, 4, 1>(v, chunks, live, weights, o),
            4 => weigh_rows::<V, C, 4, 1>(v, chunks, live, weights, o),
            5 => weigh_rows::<V, C, 5, 1>(v, chunks, live, weights, o),
            6 => weigh_rows::<V, C, 6, 1>(v, chunks, live, weights, o),
            7 => weigh_rows::<V, C, 7, 1>(v, chunks, live, weights, o),
            _ => weigh_rows::<V, C, 8, 1>(v, chunks, live, weights, o),
        }
    }
}

/// `N` rows, `T` chunks of 16 columns at once.
#[inline(always)]
unsafe fn weigh_rows<V: Lanes, C: Cell, const N: usize, const T: usize>(
    v: *const u8,
    chunks: usize,
    live: Live,
    weights: *const f32,
    o: *mut f32,
) {
    let mut c = 0;
    // SAFETY: the chunks named lie inside the values and the rows of o, for which the caller vouches.
    unsafe {
        while c + T <= chunks {
            weigh_chunks::<V, C, N, T>(v, c, chunks, live, weights, o);
            c += T;
        }
        while c < chunks {
            weigh_chunks::<V, C, N, 1>(v, c, chunks, live, weights, o);
            c += 1;
        }
    }
}

#[inline(always)]
unsafe fn weigh_chunks<V: Lanes, C: Cell, const N: usize, const T: usize>(
    v: *const u8,
    c: usize,
    chunks: usize,
    live: Live,
    weights: *const f32,
    o: *mut f32,
) {
    let chunk = BLOCK / 2 * C::PAIR;
    // SAFETY: for all of it the caller vouches; positions past `live.to` are not used.
    unsafe {
        let mut acc = [[V::splat(0.0); T]; N];
        for (n, acc) in acc.iter_mut().enumerate() {
            for (t, acc) in acc.iter_mut().enumerate() {
                *acc = V::load(o.add((n * chunks + c + t) * LANES));
            }
        }
        for i in live.from / 2..live.to / 2 {
            for t in 0..T {
                let (even, odd) = C::pair::<V>(v.add((c + t) * chunk + i * C::PAIR));
                for (n, acc) in acc.iter_mut().enumerate() {
                    let w = weights.add(n * BLOCK + 2 * i);
                    acc[t] = even.fma(V::splat(*w), acc[t]);
                    acc[t] = odd.fma(V::splat(*w.add(1)), acc[t]);
                }
            }
        }
        if live.to % 2 == 1 {
            // The odd neighbour is not written yet and may be NaN.
            for t in 0..T {
                let (even, _) = C::pair::<V>(v.add((c + t) * chunk + live.to / 2 * C::PAIR));
                for (n, acc) in acc.iter_mut().enumerate() {
                    acc[t] = even.fma(V::splat(*weights.add(n * BLOCK + live.to - 1)), acc[t]);
                }
            }
        }
        for (n, acc) in acc.iter().enumerate() {
            for (t, acc) in acc.iter().enumerate() {
                acc.store(o.add((n * chunks + c + t) * LANES));
            }
        }
    }
}
