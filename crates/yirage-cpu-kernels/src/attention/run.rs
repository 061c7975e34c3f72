//! One item: rows over the blocks of its splits with a running maximum; and the joining of splits.

use super::cell::{self, KvElement, SCALE_GROUP};
use super::plan::{AttentionPlan, AttentionTile};
use super::tile::{self, KvPositionRange, KvTileStream};
use super::{AttentionShape, BLOCK, KvCacheView, KvType, MAX_ROWS, SPLIT};
use crate::isa::Isa;
use crate::rows::{Dst, Src};
use crate::simd::{LANES, Lanes, WithLanes, launch, math};
use std::marker::PhantomData;
use std::ops::Range;

/// Below every score, and far enough from the limits to be subtracted.
const NOTHING: f32 = f32::MIN / 4.0;
/// A row's maximum moves only when a score exceeds it by this (weights are then at most e^8), so that normally no
/// exponential waits for a reduction across lanes.
const SLACK: f32 = 8.0;

/// One layer's attention over one batch.
#[derive(Clone, Copy)]
pub struct AttentionCall<'a> {
    /// The cut of the batch, made for the shape of `cache`.
    pub plan: &'a AttentionPlan,
    /// Keys and values, those of the batch included.
    pub cache: KvCacheView,
    /// Queries, `[token][heads * k_width]`.
    pub q: Src,
    /// Result, `[token][heads * v_width]`.
    pub out: Dst,
    /// Factor of the scores.
    pub scale: f32,
    /// Scores become `softcap * tanh(score / softcap)`; 0 is none.
    pub softcap: f32,
    /// One more score a head, without a value.
    pub sinks: Option<&'a [f32]>,
    /// [`AttentionPlan::parts_floats`] floats shared by all threads.
    pub parts: *mut f32,
}

// SAFETY: `parts` is only written through disjoint ranges by items, under the contract of `run_item`.
unsafe impl Send for AttentionCall<'_> {}
// SAFETY: `parts` is only written through disjoint ranges by items, under the contract of `run_item`.
unsafe impl Sync for AttentionCall<'_> {}

impl AttentionCall<'_> {
    fn check(&self) {
        let heads = self.cache.shape().heads;
        assert!(self.sinks.is_none_or(|s| s.len() == heads), "one sink a head: {heads} wanted");
        assert!(self.plan.blocks() <= self.cache.blocks(), "the plan was made for a larger cache");
    }
}

/// Computes item `item` of the plan.
///
/// # Safety
/// The plan was made for the cache's shape; rows of `q` and `out` exist for all tokens of the plan; every position that
/// the batch sees is written; `parts` has [`AttentionPlan::parts_floats`] floats; no two threads run the same item.
///
/// # Panics
/// If `item` is not below [`AttentionPlan::items`] or `scratch` has less than [`AttentionShape::worker_scratch_floats`] floats.
pub unsafe fn run_item(isa: Isa, call: &AttentionCall<'_>, item: usize, scratch: &mut [f32]) {
    call.check();
    assert!(item < call.plan.items.len(), "item {item} of {}", call.plan.items.len());
    let needed = AttentionScratch::floats(call.cache.shape());
    assert!(scratch.len() >= needed, "attention needs {needed} floats of scratch, {} given", scratch.len());
    // SAFETY: `item` wants what `run_item` is promised, and what has just been checked.
    unsafe { (call.cache.shape().kv.0.run)(isa, call, item, scratch) };
}

/// [`run_item`] of a storage type.
pub(super) type ItemFn = unsafe fn(Isa, &AttentionCall<'_>, usize, &mut [f32]);

/// [`run_item`] of what a cell stores.
///
/// # Safety
/// As [`run_item`], which has checked the item and the size of the scratch.
pub(super) unsafe fn item<C: KvElement>(isa: Isa, call: &AttentionCall<'_>, item: usize, scratch: &mut [f32]) {
    // SAFETY: `ItemKernel` wants what `item` is promised.
    unsafe { launch(isa, ItemKernel { call, item, scratch, cell: PhantomData::<C> }) };
}

/// Joins the partial results of some rows in ascending order of splits, after all items.
///
/// # Safety
/// As [`run_item`]; all items are finished and their writes visible.
///
/// # Panics
/// If `join` is not below [`AttentionPlan::joins`].
pub unsafe fn combine(isa: Isa, call: &AttentionCall<'_>, join: usize, scratch: &mut [f32]) {
    call.check();
    assert!(join < call.plan.joins.len(), "join {join} of {}", call.plan.joins.len());
    let v_pad = call.cache.shape().v_pad();
    assert!(scratch.len() >= v_pad, "combine needs {v_pad} floats of scratch, {} given", scratch.len());
    // SAFETY: `JoinKernel` wants what `combine` is promised; join and scratch have just been checked.
    unsafe { launch(isa, JoinKernel { call, join, scratch }) };
}

/// One worker's memory during an item.
#[derive(Clone, Copy)]
pub(super) struct AttentionScratch {
    /// Scaled queries, `[row][k_pad]`.
    q: *mut f32,
    /// Running maxima, `[row]`.
    m: *mut f32,
    /// Sums of weights by lane, `[row][16]`.
    l: *mut f32,
    /// Weighted values, `[row][v_pad]`.
    o: *mut f32,
    /// The same three of all splits so far (sums already one number).
    all_m: *mut f32,
    all_l: *mut f32,
    all_o: *mut f32,
    /// Scores, then weights, of a register tile's rows, `[8][32]`.
    p: *mut f32,
    /// Weights times the scales of values, [`tile::weighted`]'s own.
    scaled: *mut f32,
    /// A block's values taken out of the keys (`v_in_k`), `[v_pad / 16][32][16]`.
    v: *mut f32,
}

impl AttentionScratch {
    fn sizes(s: &AttentionShape) -> [usize; 10] {
        let (k, v) = (s.k_pad(), s.v_pad());
        let own = if s.v_in_k { BLOCK * v } else { 0 };
        let rows = MAX_ROWS;
        let scaled = if s.kv == KvType::Q8_0 { tile::SCALED_FLOATS } else { 0 };
        [k * rows, rows, LANES * rows, v * rows, rows, rows, v * rows, 8 * BLOCK, scaled, own]
    }

    pub(super) fn floats(s: &AttentionShape) -> usize {
        Self::sizes(s).iter().map(|n| n.next_multiple_of(LANES)).sum()
    }

    /// Cuts `scratch`, which has at least [`AttentionScratch::floats`] floats.
    fn cut(s: &AttentionShape, scratch: &mut [f32]) -> AttentionScratch {
        let mut rest = scratch;
        let mut places = [std::ptr::null_mut(); 10];
        for (place, size) in places.iter_mut().zip(Self::sizes(s)) {
            let (head, tail) = rest.split_at_mut(size.next_multiple_of(LANES));
            *place = head.as_mut_ptr();
            rest = tail;
        }
        let [q, m, l, o, all_m, all_l, all_o, p, scaled, v] = places;
        AttentionScratch { q, m, l, o, all_m, all_l, all_o, p, scaled, v }
    }
}

/// A row of a unit: its token and query head.
#[inline(always)]
fn token_and_head(unit: &AttentionTile, group: usize, row: usize) -> (usize, usize) {
    let (g, tokens) = (unit.group.len(), unit.tokens.len());
    let (head, rest) = (unit.kv_heads.start + row / (g * tokens), row % (g * tokens));
    (unit.tokens.start + rest / g, head * group + unit.group.start + rest % g)
}

/// Needs what [`item`] is promised.
struct ItemKernel<'a, 'b, C> {
    call: &'a AttentionCall<'b>,
    item: usize,
    scratch: &'a mut [f32],
    cell: PhantomData<C>,
}

impl<C: KvElement> WithLanes for ItemKernel<'_, '_, C> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let (call, shape) = (self.call, self.call.cache.shape());
        let item = &call.plan.items[self.item];
        let unit = &call.plan.units[item.unit];
        let scratch = AttentionScratch::cut(shape, self.scratch);
        // SAFETY: the contract of `run_item`; the scratch was cut to the shape.
        unsafe {
            queries(call, unit, &scratch);
            if unit.parts.is_none() {
                for row in 0..unit.rows() {
                    *scratch.all_m.add(row) = NOTHING;
                    *scratch.all_l.add(row) = 0.0;
                }
                fill(scratch.all_o, unit.rows() * shape.v_pad());
            }
            for split in item.splits.clone() {
                run_split::<V, C>(call, unit, split, &scratch);
                emit::<V>(call, unit, split, &scratch);
            }
            if unit.parts.is_none() {
                for row in 0..unit.rows() {
                    let state = OnlineSoftmaxState {
                        m: *scratch.all_m.add(row),
                        l: *scratch.all_l.add(row),
                        o: scratch.all_o.add(row * shape.v_pad()),
                    };
                    finish::<V>(call, unit, row, state);
                }
            }
        }
    }
}

/// `n` zeros.
///
/// # Safety
/// `p` has room for `n` floats, which nobody else uses.
#[inline(always)]
unsafe fn fill(p: *mut f32, n: usize) {
    // SAFETY: `fill` is promised n floats; `AttentionCall::check` has checked the call.
    unsafe { std::slice::from_raw_parts_mut(p, n) }.fill(0.0);
}

/// Scaled queries of all rows, padded with a zero.
///
/// # Safety
/// As for [`run_item`]; the scratch is the shape's.
#[inline(always)]
unsafe fn queries(call: &AttentionCall<'_>, unit: &AttentionTile, scratch: &AttentionScratch) {
    let s = call.cache.shape();
    for row in 0..unit.rows() {
        let (token, head) = token_and_head(unit, s.group(), row);
        // SAFETY: `queries` is promised q's rows; the scratch has MAX_ROWS rows; `AttentionCall::check` has checked
        // the call.
        unsafe {
            let (from, to) = (call.q.row(token).add(head * s.k_width), scratch.q.add(row * s.k_pad()));
            for d in 0..s.k_width {
                *to.add(d) = *from.add(d) * call.scale;
            }
            if s.k_width < s.k_pad() {
                *to.add(s.k_width) = 0.0;
            }
        }
    }
}

/// Maximum, sum and weighted values of all rows over one split, in `scratch.{m, l, o}`.
#[inline(always)]
unsafe fn run_split<V: Lanes, C: KvElement>(
    call: &AttentionCall<'_>,
    unit: &AttentionTile,
    split: usize,
    scratch: &AttentionScratch,
) {
    let s = call.cache.shape();
    let (per_head, v_pad) = (unit.tokens.len() * unit.group.len(), s.v_pad());
    // SAFETY: the contract of `run_item`: blocks and rows exist.
    unsafe {
        for row in 0..unit.rows() {
            *scratch.m.add(row) = NOTHING;
        }
        fill(scratch.l, unit.rows() * LANES);
        fill(scratch.o, unit.rows() * v_pad);
        let (from, to) = ((split * SPLIT).max(unit.visible.start), ((split + 1) * SPLIT).min(unit.visible.end));
        let blocks = from / BLOCK..to.div_ceil(BLOCK);
        let physical = |block: usize| call.plan.tables[unit.seq * call.plan.max_blocks + block] as usize;
        for block in blocks.clone() {
            let first = block * BLOCK;
            let live = KvPositionRange { from: from.saturating_sub(first) / 2 * 2, to: (to - first).min(BLOCK) };
            for (i, head) in unit.kv_heads.clone().enumerate() {
                let k = call.cache.head(physical(block), head).cast_const();
                let v = k.add(s.k_bytes());
                let next = match head + 1 < unit.kv_heads.end {
                    true => call.cache.head(physical(block), head + 1),
                    false => call.cache.head(physical((block + 1).min(blocks.end - 1)), unit.kv_heads.start),
                };
                if s.v_in_k {
                    values_of_keys::<V, C>(k, s, scratch.v);
                }
                let mut row = i * per_head;
                while row < (i + 1) * per_head {
                    let n = V::ROWS.min((i + 1) * per_head - row);
                    // the first rows ask for what follows
                    let ahead = |p: *const u8| if row == i * per_head { p } else { std::ptr::null() };
                    let keys = KvTileStream { now: k, next: ahead(if s.v_in_k { next.cast_const() } else { v }) };
                    tile::scores::<V, C>(n, keys, s.k_pad() / 2, scratch.q.add(row * s.k_pad()), scratch.p);
                    let any = softmax_rows::<V>(call, unit, row..row + n, first, scratch);
                    let o = scratch.o.add(row * v_pad);
                    if any && s.v_in_k {
                        let v = KvTileStream { now: scratch.v.cast::<u8>().cast_const(), next: std::ptr::null() };
                        tile::weighted::<V, cell::KvF32>(n, v, v_pad / LANES, live, scratch.p, scratch.scaled, o);
                    } else if any {
                        let v = KvTileStream { now: v, next: ahead(next.cast_const()) };
                        tile::weighted::<V, C>(n, v, v_pad / LANES, live, scratch.p, scratch.scaled, o);
                    }
                    row += n;
                }
            }
        }
    }
}

/// Scores in `scratch.p` to weights; false if no row sees any position of the block at `first`.
#[inline(always)]
unsafe fn softmax_rows<V: Lanes>(
    call: &AttentionCall<'_>,
    unit: &AttentionTile,
    rows: Range<usize>,
    first: usize,
    scratch: &AttentionScratch,
) -> bool {
    let s = call.cache.shape();
    let (cap, per_cap) = (V::splat(call.softcap), V::splat(1.0 / call.softcap));
    let mut any = false;
    for (n, row) in rows.enumerate() {
        let (token, _) = token_and_head(unit, s.group(), row);
        let seen = &call.plan.visible[token];
        let from = (seen.start as usize).saturating_sub(first).min(BLOCK);
        let to = (seen.end as usize).saturating_sub(first).min(BLOCK).max(from);
        // SAFETY: the scratch has these rows.
        unsafe {
            let p = scratch.p.add(n * BLOCK);
            if from == to {
                fill(p, BLOCK);
                continue;
            }
            any = true;
            let nothing = V::splat(NOTHING);
            let (mut a, mut b) = (V::load(p), V::load(p.add(LANES)));
            if call.softcap > 0.0 {
                a = math::tanh(a.mul(per_cap)).mul(cap);
                b = math::tanh(b.mul(per_cap)).mul(cap);
            }
            let (fa, ta) = (from.min(LANES), to.min(LANES));
            let (fb, tb) = (from.saturating_sub(LANES), to.saturating_sub(LANES));
            (a, b) = (a.keep(fa, ta, nothing), b.keep(fb, tb, nothing));
            let (m, l) = (scratch.m.add(row), scratch.l.add(row * LANES));
            let (best, mut sum) = (a.max(b), V::load(l));
            if best.any_greater(V::splat(*m + SLACK)) {
                let new = best.largest();
                let keep = math::exp(V::splat(*m - new));
                *m = new;
                sum = sum.mul(keep);
                let o = scratch.o.add(row * s.v_pad());
                for c in 0..s.v_pad() / LANES {
                    V::load(o.add(c * LANES)).mul(keep).store(o.add(c * LANES));
                }
            }
            let (m, zero) = (V::splat(*m), V::splat(0.0));
            let a = math::exp(a.sub(m)).keep(fa, ta, zero);
            let b = math::exp(b.sub(m)).keep(fb, tb, zero);
            sum.add(a).add(b).store(l);
            a.store(p);
            b.store(p.add(LANES));
        }
    }
    any
}

/// The first `v_width` elements of a block's keys as f32 values `[v_pad / 16][32][16]`.
///
/// # Safety
/// A block's keys at `k`, room for the values at `out`.
#[inline(always)]
unsafe fn values_of_keys<V: Lanes, C: KvElement>(k: *const u8, s: &AttentionShape, out: *mut f32) {
    let pairs = s.k_pad() / 2;
    // SAFETY: `values_of_keys` is promised a block's keys; `out` has BLOCK * v_pad floats.
    unsafe {
        fill(out, BLOCK * s.v_pad());
        for tile in 0..BLOCK / LANES {
            for d in 0..s.v_width {
                let (even, odd) = C::pair::<V>(k.add((tile * pairs + d / 2) * C::PAIR));
                let mut row = if d % 2 == 0 { even } else { odd };
                if C::SCALED {
                    row = row.mul(cell::scales::<V, C>(k, s.k_width, d / SCALE_GROUP, tile * LANES));
                }
                for (i, x) in row.array().into_iter().enumerate() {
                    *out.add((d / LANES * BLOCK + tile * LANES + i) * LANES + d % LANES) = x;
                }
            }
        }
    }
}

/// A row's maximum, sum of weights, and weighted values.
#[derive(Clone, Copy)]
struct OnlineSoftmaxState {
    m: f32,
    l: f32,
    o: *mut f32,
}

/// Joins `part` to `all`. A part without any position changes nothing to the bit.
///
/// # Safety
/// Both have `v_pad` values.
#[inline(always)]
unsafe fn fold<V: Lanes>(all: &mut OnlineSoftmaxState, part: OnlineSoftmaxState, v_pad: usize) {
    let new = if part.m > all.m { part.m } else { all.m };
    let (a, b) = (math::exp(V::splat(all.m - new)), math::exp(V::splat(part.m - new)));
    all.m = new;
    all.l = V::splat(part.l).fma(b, V::splat(all.l).mul(a)).array()[0];
    for c in (0..v_pad).step_by(LANES) {
        // SAFETY: `fold` is promised v_pad floats of both; `AttentionCall::check` has checked the call.
        unsafe { V::load(part.o.add(c)).fma(b, V::load(all.o.add(c)).mul(a)).store(all.o.add(c)) };
    }
}

/// Hands the split's results on: to the parts, or joined to those of the splits before.
#[inline(always)]
unsafe fn emit<V: Lanes>(call: &AttentionCall<'_>, unit: &AttentionTile, split: usize, scratch: &AttentionScratch) {
    let (v_pad, rows) = (call.cache.shape().v_pad(), unit.rows());
    for row in 0..rows {
        // SAFETY: the scratch has these rows; the unit's parts are its own and this split's are this item's.
        unsafe {
            let (o, l) = (scratch.o.add(row * v_pad), V::load(scratch.l.add(row * LANES)).sum());
            let part = OnlineSoftmaxState { m: *scratch.m.add(row), l, o };
            if let Some(first) = unit.parts {
                let base = call.parts.add(first + (split - unit.splits().start) * rows * (2 + v_pad));
                *base.add(row) = part.m;
                *base.add(rows + row) = part.l;
                let to = base.add(2 * rows + row * v_pad);
                for c in (0..v_pad).step_by(LANES) {
                    V::load(o.add(c)).store(to.add(c));
                }
            } else {
                let (m, l) = (scratch.all_m.add(row), scratch.all_l.add(row));
                let mut all = OnlineSoftmaxState { m: *m, l: *l, o: scratch.all_o.add(row * v_pad) };
                fold::<V>(&mut all, part, v_pad);
                (*m, *l) = (all.m, all.l);
            }
        }
    }
}

/// The sink joins the sum; values over sum go out.
#[inline(always)]
unsafe fn finish<V: Lanes>(call: &AttentionCall<'_>, unit: &AttentionTile, row: usize, mut state: OnlineSoftmaxState) {
    let s = call.cache.shape();
    let (token, head) = token_and_head(unit, s.group(), row);
    let mut a = V::splat(1.0);
    if let Some(sinks) = call.sinks {
        let new = if sinks[head] > state.m { sinks[head] } else { state.m };
        a = math::exp(V::splat(state.m - new));
        let b = math::exp(V::splat(sinks[head] - new));
        state.l = V::splat(state.l).fma(a, b).array()[0];
    }
    let factor = a.mul(V::splat(1.0 / state.l));
    // SAFETY: `run_item` and `combine` are promised out's rows; `o` has v_pad floats.
    unsafe {
        let out = call.out.row(token).add(head * s.v_width);
        for c in (0..s.v_width).step_by(LANES) {
            let y = V::load(state.o.add(c)).mul(factor);
            if c + LANES <= s.v_width {
                y.store(out.add(c));
            } else {
                let rest = y.array();
                std::ptr::copy_nonoverlapping(rest.as_ptr(), out.add(c), s.v_width - c);
            }
        }
    }
}

/// Needs what [`combine`] is promised, and scratch for a row, which it checks.
struct JoinKernel<'a, 'b> {
    call: &'a AttentionCall<'b>,
    join: usize,
    scratch: &'a mut [f32],
}

impl WithLanes for JoinKernel<'_, '_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let call = self.call;
        let join = &call.plan.joins[self.join];
        let unit = &call.plan.units[join.unit];
        let (v_pad, rows, splits) = (call.cache.shape().v_pad(), unit.rows(), unit.splits().len());
        let Some(first) = unit.parts else { return };
        for row in join.rows.clone() {
            self.scratch[..v_pad].fill(0.0);
            let mut all = OnlineSoftmaxState { m: NOTHING, l: 0.0, o: self.scratch.as_mut_ptr() };
            for split in 0..splits {
                // SAFETY: all items have written their parts; the scratch has v_pad floats.
                unsafe {
                    let base = call.parts.add(first + split * rows * (2 + v_pad));
                    let part = OnlineSoftmaxState {
                        m: *base.add(row),
                        l: *base.add(rows + row),
                        o: base.add(2 * rows + row * v_pad),
                    };
                    fold::<V>(&mut all, part, v_pad);
                }
            }
            // SAFETY: the contract of `combine`.
            unsafe { finish::<V>(call, unit, row, all) };
        }
    }
}
