//! The largest or smallest elements of a row, selected without sorting the row.

use super::Src;
use crate::isa::Isa;
use crate::simd::{Lanes, WithLanes, launch};
use std::ops::Range;

/// Which elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopKParams {
    /// Elements of a row.
    pub width: usize,
    /// Elements kept.
    pub k: usize,
    /// Whether the largest are kept.
    pub largest: bool,
    /// Whether they come in rank order; else in the order of their indices.
    pub sorted: bool,
}

/// Elements that are skipped together when none of them can be among the best.
const SKIP: usize = 64;

/// An element as one number: the smaller, the better its rank. Its index stands below, so that the lower of equals wins.
fn rank(x: f32, largest: bool, index: usize) -> u64 {
    // -0 becomes 0 and every NaN the largest one; then bits order as values do, once negative ones are turned over.
    let bits = if x.is_nan() { 0x7fff_ffff } else { (x + 0.0).to_bits() };
    let ascending = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    let value = if largest { !ascending } else { ascending };
    u64::from(value) << 32 | index as u64
}

/// The elements of the rows of a range and where they stand. `values` and `indices` are `[rows.len()][k]`, the range's
/// own part.
///
/// # Safety
/// The rows of the range exist in `x`.
///
/// # Panics
/// If `values` or `indices` have another length, or `k` is above `width`.
pub unsafe fn top_k(isa: Isa, rows: Range<usize>, top: TopKParams, x: Src, values: &mut [f32], indices: &mut [i32]) {
    let wanted = rows.len() * top.k;
    assert!(top.k <= top.width && values.len() == wanted && indices.len() == wanted, "room for {wanted} wanted");
    let mut best = Vec::new();
    for (r, (values, indices)) in rows.zip(values.chunks_mut(top.k).zip(indices.chunks_mut(top.k))) {
        // SAFETY: `top_k` is promised the row; `Site` binds whole rows.
        let x = unsafe { std::slice::from_raw_parts(x.row(r), top.width) };
        select(isa, x, &top, &mut best);
        if top.sorted {
            best.sort_unstable();
        } else {
            best.sort_unstable_by_key(|rank| *rank as u32);
        }
        for ((rank, value), index) in best.iter().zip(values).zip(indices) {
            let at = *rank as u32 as usize;
            (*value, *index) = (x[at], at as i32);
        }
    }
}

/// Fills `best` with the ranks of the `k` best, in no order.
fn select(isa: Isa, x: &[f32], top: &TopKParams, best: &mut Vec<u64>) {
    best.clear();
    let limit = top.k.saturating_mul(2).max(1024);
    let mut floor: Option<f32> = None;
    for (c, chunk) in x.chunks(SKIP).enumerate() {
        // SAFETY: the kernel holds slices alone, so it needs no promise.
        let may_rank = |floor| unsafe { launch(isa, Beats { chunk, floor, largest: top.largest }) };
        if floor.is_some_and(|floor| !may_rank(floor)) {
            continue;
        }
        let ranked = chunk.iter().enumerate().map(|(i, &x)| rank(x, top.largest, c * SKIP + i));
        best.extend(ranked);
        if best.len() >= limit {
            keep(best, top.k);
            let worst = best.iter().max().map(|rank| x[*rank as u32 as usize]);
            // Nothing is told apart from NaN by a comparison: then no chunk is skipped.
            floor = worst.filter(|x| !x.is_nan());
        }
    }
    keep(best, top.k);
}

fn keep(best: &mut Vec<u64>, k: usize) {
    if best.len() > k {
        best.select_nth_unstable(k - 1);
        best.truncate(k);
    }
}

/// Whether any element of a chunk may rank before `floor`.
struct Beats<'a> {
    chunk: &'a [f32],
    floor: f32,
    largest: bool,
}

impl WithLanes for Beats<'_> {
    type Out = bool;
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> bool {
        let floor = V::splat(self.floor);
        let (p, n) = (self.chunk.as_ptr(), self.chunk.len());
        let mut any = false;
        for i in (0..n).step_by(crate::simd::LANES) {
            // SAFETY: the slice has its length; lanes past its end never beat the floor.
            let x = unsafe { super::load::<V>(p.add(i), n - i, self.floor) };
            any |= if self.largest { x.any_greater(floor) || x.any_nan() } else { floor.any_greater(x) };
        }
        any
    }
}
