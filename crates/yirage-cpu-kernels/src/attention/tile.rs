//! The two inner products: scores of rows against a block's keys, and rows of weights times a block's values.
//!
//! Each is a chain of fused multiply-adds per element in ascending order (of the width, of the positions), whatever the
//! number of rows worked on together. Where there are scales, a score is such a chain over the sums of its groups of 32
//! elements, each times its scale.

use super::BLOCK;
use super::cell::{self, KvElement, SCALE_GROUP};
use crate::memory::prefetch;
use crate::simd::{LANES, Lanes, WithLanes};
use std::marker::PhantomData;
use std::ops::Range;

/// A block's keys or values, and what memory is to be read next, if it should be asked for: the hardware does not know
/// where the next block lies.
#[derive(Clone, Copy)]
pub(super) struct KvTileStream {
    /// The block's.
    pub(super) now: *const u8,
    /// As many bytes, or null.
    pub(super) next: *const u8,
}

impl KvTileStream {
    /// The pair of vectors `at` bytes from the beginning.
    ///
    /// # Safety
    /// It is one of the block's.
    #[inline(always)]
    unsafe fn pair<V: Lanes, C: KvElement>(self, at: usize) -> (V, V) {
        if !self.next.is_null() {
            prefetch(self.next.wrapping_add(at), C::PAIR);
        }
        // SAFETY: what `KvTileStream::pair` is promised; `AttentionCall::check` has checked the call.
        unsafe { C::pair::<V>(self.now.add(at)) }
    }
}

/// Scores of up to `V::ROWS` (4 or 8) rows: `out[n][32] = q[n] . keys`. `pairs` is half the padded width.
///
/// # Safety
/// A block's keys, `rows` rows of q and as many of 32 scores in out, which nobody else uses.
#[inline(always)]
pub(super) unsafe fn scores<V: Lanes, C: KvElement>(
    rows: usize,
    k: KvTileStream,
    pairs: usize,
    q: *const f32,
    out: *mut f32,
) {
    let call = ScoreCall { k, pairs, q, out };
    // SAFETY: `scores` is promised as many rows as it says, or as the last arm takes; `AttentionCall::check` has
    // checked the call.
    unsafe {
        if const { V::ROWS == 4 } {
            match rows {
                1 => call.rows::<V, C, 1, 2>(),
                2 => call.rows::<V, C, 2, 2>(),
                3 => call.rows::<V, C, 3, 1>(),
                _ => call.rows::<V, C, 4, 1>(),
            }
        } else {
            match rows {
                1 => call.rows::<V, C, 1, 2>(),
                2 => call.rows::<V, C, 2, 2>(),
                3 => call.rows::<V, C, 3, 1>(),
                4 => call.rows::<V, C, 4, 2>(),
                5 => call.rows::<V, C, 5, 2>(),
                6 => call.rows::<V, C, 6, 2>(),
                7 => call.rows::<V, C, 7, 2>(),
                _ => call.rows::<V, C, 8, 1>(),
            }
        }
    }
}

/// What [`scores`] is called with, but for the number of rows.
struct ScoreCall {
    k: KvTileStream,
    pairs: usize,
    q: *const f32,
    out: *mut f32,
}

impl ScoreCall {
    /// # Safety
    /// The addresses have N rows of q and out, and a block of keys, as [`scores`] is promised.
    #[inline(always)]
    unsafe fn rows<V: Lanes, C: KvElement, const N: usize, const T: usize>(self) {
        // SAFETY: `ScoreKernel` wants what `ScoreCall::rows` is promised.
        unsafe { V::apart(ScoreKernel::<C, N, T>(self, PhantomData)) };
    }
}

/// [`score_rows`] as a function of its own.
struct ScoreKernel<C, const N: usize, const T: usize>(ScoreCall, PhantomData<C>);

impl<C: KvElement, const N: usize, const T: usize> WithLanes for ScoreKernel<C, N, T> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let ScoreCall { k, pairs, q, out } = self.0;
        // SAFETY: `ScoreCall::rows` is promised N rows of q and out and a block's keys.
        unsafe { score_rows::<V, C, N, T>(k, pairs, q, out) }
    }
}

/// `N` rows, `T` tiles of 16 positions at once (independent chains for few rows).
///
/// # Safety
/// As for [`scores`], of N rows.
#[inline(always)]
unsafe fn score_rows<V: Lanes, C: KvElement, const N: usize, const T: usize>(
    k: KvTileStream,
    pairs: usize,
    q: *const f32,
    out: *mut f32,
) {
    let mut first = 0;
    while first < BLOCK / LANES {
        let mut acc = [[V::splat(0.0); T]; N];
        // SAFETY: `score_rows` is promised the block's keys and N rows of q and out; `AttentionCall::check` has
        // checked the call.
        unsafe {
            if C::SCALED {
                let per = SCALE_GROUP / 2;
                for group in 0..pairs / per {
                    let sums = dot::<V, C, N, T>(k, pairs, first, group * per..(group + 1) * per, q);
                    for t in 0..T {
                        let scales = cell::scales::<V, C>(k.now, 2 * pairs, group, (first + t) * LANES);
                        for (acc, sums) in acc.iter_mut().zip(&sums) {
                            acc[t] = sums[t].fma(scales, acc[t]);
                        }
                    }
                }
            } else {
                acc = dot::<V, C, N, T>(k, pairs, first, 0..pairs, q);
            }
            for (n, acc) in acc.iter().enumerate() {
                for (t, acc) in acc.iter().enumerate() {
                    acc.store(out.add(n * BLOCK + (first + t) * LANES));
                }
            }
        }
        first += T;
    }
}

/// Sums over some pairs of elements, of `T` tiles from `first` on.
///
/// # Safety
/// A block's keys, which have the tiles and pairs, and N rows of q.
#[inline(always)]
unsafe fn dot<V: Lanes, C: KvElement, const N: usize, const T: usize>(
    k: KvTileStream,
    pairs: usize,
    first: usize,
    range: Range<usize>,
    q: *const f32,
) -> [[V; T]; N] {
    let tile = pairs * C::PAIR;
    let mut acc = [[V::splat(0.0); T]; N];
    for j in range {
        for t in 0..T {
            // SAFETY: `dot` is promised the block's keys and N rows of q; `AttentionCall::check` has checked the call.
            unsafe {
                let (even, odd) = k.pair::<V, C>((first + t) * tile + j * C::PAIR);
                for (n, acc) in acc.iter_mut().enumerate() {
                    let q = q.add(n * 2 * pairs + 2 * j);
                    acc[t] = even.fma(V::splat(*q), acc[t]);
                    acc[t] = odd.fma(V::splat(*q.add(1)), acc[t]);
                }
            }
        }
    }
    acc
}

/// The part of a block whose values are read: positions `from..to`.
#[derive(Clone, Copy)]
pub(super) struct KvPositionRange {
    /// First position, rounded down to an even one.
    pub(super) from: usize,
    /// One past the last position.
    pub(super) to: usize,
}

/// Floats that [`weighted`] needs for weights times scales: of [`MOST`] rows, or of fewer for more columns at once.
pub(super) const SCALED_FLOATS: usize = MOST * BLOCK;
/// Most rows times groups of 32 columns whose weights are scaled together.
const MOST: usize = 8;

/// Adds `weights[n][32]` times the block's values to `o[n][16 * chunks]`. `scaled` has [`SCALED_FLOATS`] floats where
/// the values have scales.
///
/// # Safety
/// A block's values of so many chunks, `rows` rows of 32 weights, of o and of room for scaled weights, which nobody else uses.
#[inline(always)]
pub(super) unsafe fn weighted<V: Lanes, C: KvElement>(
    rows: usize,
    v: KvTileStream,
    chunks: usize,
    live: KvPositionRange,
    weights: *const f32,
    scaled: *mut f32,
    o: *mut f32,
) {
    let call = WeightedCall { b: ValueTile { v, chunks, live, scaled }, weights, o };
    // SAFETY: `weighted` is promised as many rows as it says, or as the last arm takes; `AttentionCall::check` has
    // checked the call.
    unsafe {
        if const { V::ROWS == 4 } {
            match rows {
                1 => call.rows::<V, C, 1, 4>(),
                2 => call.rows::<V, C, 2, 2>(),
                3 => call.rows::<V, C, 3, 1>(),
                _ => call.rows::<V, C, 4, 1>(),
            }
        } else {
            match rows {
                1 => call.rows::<V, C, 1, 4>(),
                2 => call.rows::<V, C, 2, 2>(),
                3 => call.rows::<V, C, 3, 1>(),
                4 => call.rows::<V, C, 4, 2>(),
                5 => call.rows::<V, C, 5, 2>(),
                6 => call.rows::<V, C, 6, 2>(),
                7 => call.rows::<V, C, 7, 2>(),
                _ => call.rows::<V, C, 8, 1>(),
            }
        }
    }
}

/// What [`weighted`] is called with, but for the number of rows.
struct WeightedCall {
    b: ValueTile,
    weights: *const f32,
    o: *mut f32,
}

impl WeightedCall {
    /// # Safety
    /// The addresses have N rows of weights and o, and a block of values, as [`weighted`] is promised.
    #[inline(always)]
    unsafe fn rows<V: Lanes, C: KvElement, const N: usize, const T: usize>(self) {
        // SAFETY: `WeightedKernel` wants what `WeightedCall::rows` is promised.
        unsafe { V::apart(WeightedKernel::<C, N, T>(self, PhantomData)) };
    }
}

/// [`weigh_rows`] as a function of its own.
struct WeightedKernel<C, const N: usize, const T: usize>(WeightedCall, PhantomData<C>);

impl<C: KvElement, const N: usize, const T: usize> WithLanes for WeightedKernel<C, N, T> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let WeightedCall { b, weights, o } = self.0;
        // SAFETY: `WeightedCall::rows` is promised N rows of weights and o and a block's values.
        unsafe { weigh_rows::<V, C, N, T>(b, weights, o) }
    }
}

/// A block's values, `[chunks][32][16]`, of which some are live, and room for scaled weights.
#[derive(Clone, Copy)]
struct ValueTile {
    v: KvTileStream,
    chunks: usize,
    live: KvPositionRange,
    scaled: *mut f32,
}

/// Weights `[rows][32]`, and how far apart those of adjacent groups of [`PER`] chunks are: 0 where all are the same.
#[derive(Clone, Copy)]
struct AttentionWeights {
    first: *const f32,
    apart: usize,
}

/// Chunks of 16 columns that share scales, where there are any.
const PER: usize = SCALE_GROUP / LANES;

/// `N` rows, `T` chunks of 16 columns at once.
///
/// # Safety
/// As for [`weighted`], of N rows.
#[inline(always)]
unsafe fn weigh_rows<V: Lanes, C: KvElement, const N: usize, const T: usize>(
    b: ValueTile,
    weights: *const f32,
    o: *mut f32,
) {
    if !C::SCALED {
        // SAFETY: what `weigh_rows` is promised; `AttentionCall::check` has checked the call.
        return unsafe { weigh_span::<V, C, N, T>(b, 0..b.chunks, AttentionWeights { first: weights, apart: 0 }, o) };
    }
    // The widths of scaled values are whole groups.
    let (groups, at_once) = (b.chunks / PER, T.div_ceil(PER));
    let mut group = 0;
    while group < groups {
        let count = at_once.min(groups - group);
        // SAFETY: the groups exist; `at_once * N` is at most MOST; the caller gives the rest.
        unsafe {
            for i in 0..count {
                for at in [0, LANES] {
                    let scales = cell::scales::<V, C>(b.v.now, b.chunks * LANES, group + i, at);
                    for n in 0..N {
                        let to = b.scaled.add((i * N + n) * BLOCK + at);
                        V::load(weights.add(n * BLOCK + at)).mul(scales).store(to);
                    }
                }
            }
            let scaled = AttentionWeights { first: b.scaled, apart: N * BLOCK };
            weigh_span::<V, C, N, T>(b, group * PER..(group + count) * PER, scaled, o);
        }
        group += count;
    }
}

/// A span of chunks, `T` at once; the weights are those of its first group on.
///
/// # Safety
/// As for [`weigh_rows`]; the span is among the chunks.
#[inline(always)]
unsafe fn weigh_span<V: Lanes, C: KvElement, const N: usize, const T: usize>(
    b: ValueTile,
    span: Range<usize>,
    weights: AttentionWeights,
    o: *mut f32,
) {
    let mut c = span.start;
    // SAFETY: the chunks named lie inside the values and the rows of o that `weigh_span` is promised.
    unsafe {
        while c < span.end {
            let first = weights.first.add((c - span.start) / PER * weights.apart);
            let weights = AttentionWeights { first, ..weights };
            if c + T <= span.end {
                weigh_chunks::<V, C, N, T>(b, c, weights, o);
                c += T;
            } else {
                weigh_chunks::<V, C, N, 1>(b, c, weights, o);
                c += 1;
            }
        }
    }
}

#[inline(always)]
unsafe fn weigh_chunks<V: Lanes, C: KvElement, const N: usize, const T: usize>(
    b: ValueTile,
    c: usize,
    weights: AttentionWeights,
    o: *mut f32,
) {
    let ValueTile { v, chunks, live, .. } = b;
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
                let (even, odd) = v.pair::<V, C>((c + t) * chunk + i * C::PAIR);
                for (n, acc) in acc.iter_mut().enumerate() {
                    let w = weights.first.add(t / PER * weights.apart + n * BLOCK + 2 * i);
                    acc[t] = even.fma(V::splat(*w), acc[t]);
                    acc[t] = odd.fma(V::splat(*w.add(1)), acc[t]);
                }
            }
        }
        if live.to % 2 == 1 {
            // The odd neighbour is not written yet and may be NaN.
            for t in 0..T {
                let (even, _) = v.pair::<V, C>((c + t) * chunk + live.to / 2 * C::PAIR);
                for (n, acc) in acc.iter_mut().enumerate() {
                    let w = weights.first.add(t / PER * weights.apart + n * BLOCK + live.to - 1);
                    acc[t] = even.fma(V::splat(*w), acc[t]);
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
