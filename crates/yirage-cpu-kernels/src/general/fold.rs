//! Partial results: how a reduction takes elements in, and joins what it has.

use super::elem::ComputeType;
use crate::simd::math::{larger, smaller};
use crate::simd::{LANES, Lanes, WithLanes};
use yirage_ir::op::{PARTS, ReduceKind};

/// What a reduction does with elements that are held so.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fold {
    pub(super) kind: ReduceKind,
    pub(super) compute_type: ComputeType,
}

impl Fold {
    /// The word of a partial result of no elements.
    pub(super) fn none(self) -> u32 {
        match (self.kind, self.compute_type) {
            (ReduceKind::Prod, ComputeType::Float) => 1f32.to_bits(),
            (ReduceKind::Prod, _) => 1,
            (ReduceKind::Max, ComputeType::Float) => f32::NEG_INFINITY.to_bits(),
            (ReduceKind::Max, ComputeType::I32) => i32::MIN as u32,
            (ReduceKind::Min, ComputeType::Float) => f32::INFINITY.to_bits(),
            (ReduceKind::Min, ComputeType::I32) => i32::MAX as u32,
            (ReduceKind::Min, _) => u32::MAX,
            _ => 0,
        }
    }

    /// The result of `count` elements, of what they have been joined to.
    pub(super) fn finish(self, joined: &mut [f32], count: usize) {
        if matches!(self.kind, ReduceKind::Mean | ReduceKind::MeanSquare) {
            // In f64, since it is one number.
            joined.iter_mut().for_each(|x| *x = (f64::from(*x) / count as f64) as f32);
        }
    }
}

/// A step of a reduction.
trait FoldStep {
    /// The partial result with an element taken in.
    fn take<V: Lanes>(part: V, x: V) -> V;
    /// Two partial results as one.
    #[inline(always)]
    fn join<V: Lanes>(a: V, b: V) -> V {
        Self::take(a, b)
    }
}

macro_rules! steps {
    ($($name:ident: $part:ident, $x:ident => $e:expr;)*) => {$(
        struct $name;
        impl FoldStep for $name {
            #[inline(always)]
            fn take<V: Lanes>($part: V, $x: V) -> V {
                $e
            }
        }
    )*};
}

steps! {
    Sum: a, x => a.add(x);
    Product: a, x => a.mul(x);
    Largest: a, x => larger(a, x);
    Smallest: a, x => smaller(a, x);
    WholeSum: a, x => a.wrapping_add(x);
    WholeProduct: a, x => a.wrapping_mul(x);
    SignedLargest: a, x => a.whole_less(x).choose(x, a);
    SignedSmallest: a, x => x.whole_less(a).choose(x, a);
    UnsignedLargest: a, x => below(a, x).choose(x, a);
    UnsignedSmallest: a, x => below(x, a).choose(x, a);
}

struct SumOfSquares;

impl FoldStep for SumOfSquares {
    #[inline(always)]
    fn take<V: Lanes>(part: V, x: V) -> V {
        x.fma(x, part)
    }
    #[inline(always)]
    fn join<V: Lanes>(a: V, b: V) -> V {
        a.add(b)
    }
}

#[inline(always)]
fn below<V: Lanes>(a: V, b: V) -> V {
    let sign = V::word(1 << 31);
    a.xor(sign).whole_less(b.xor(sign))
}

/// Something that is done with the step of a fold.
trait Folding {
    fn with<V: Lanes, S: FoldStep>(self);
}

#[inline(always)]
fn dispatch<V: Lanes>(fold: Fold, work: impl Folding) {
    match (fold.kind, fold.compute_type) {
        (ReduceKind::Sum | ReduceKind::Mean, ComputeType::Float) => work.with::<V, Sum>(),
        (ReduceKind::MeanSquare, _) => work.with::<V, SumOfSquares>(),
        (ReduceKind::Prod, ComputeType::Float) => work.with::<V, Product>(),
        (ReduceKind::Max, ComputeType::Float) => work.with::<V, Largest>(),
        (ReduceKind::Min, ComputeType::Float) => work.with::<V, Smallest>(),
        (ReduceKind::Sum | ReduceKind::Mean, _) => work.with::<V, WholeSum>(),
        (ReduceKind::Prod, _) => work.with::<V, WholeProduct>(),
        (ReduceKind::Max, ComputeType::I32) => work.with::<V, SignedLargest>(),
        (ReduceKind::Min, ComputeType::I32) => work.with::<V, SignedSmallest>(),
        (ReduceKind::Max, _) => work.with::<V, UnsignedLargest>(),
        (ReduceKind::Min, _) => work.with::<V, UnsignedSmallest>(),
    }
}

/// Takes elements into the partial results of one output; as many as there are parts came before, or a multiple.
pub(super) struct Take<'a> {
    pub(super) fold: Fold,
    pub(super) parts: &'a mut [f32; PARTS],
    pub(super) x: &'a [f32],
}

impl WithLanes for Take<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        dispatch::<V>(self.fold, self);
    }
}

impl Folding for Take<'_> {
    #[inline(always)]
    fn with<V: Lanes, S: FoldStep>(self) {
        let Take { fold, parts, x } = self;
        let (vectors, rest) = parts.as_chunks_mut::<LANES>();
        debug_assert!(rest.is_empty());
        let none = V::word(fold.none());
        let mut now = [none; PARTS / LANES];
        for (now, part) in now.iter_mut().zip(vectors.iter()) {
            *now = V::of(part);
        }
        let mut chunks = x.chunks_exact(PARTS);
        for chunk in &mut chunks {
            let (chunk, _) = chunk.as_chunks::<LANES>();
            for (now, x) in now.iter_mut().zip(chunk) {
                *now = S::take(*now, V::of(x));
            }
        }
        let (whole, last) = chunks.remainder().as_chunks::<LANES>();
        for (now, x) in now.iter_mut().zip(whole) {
            *now = S::take(*now, V::of(x));
        }
        if !last.is_empty() {
            // What is past the end changes nothing.
            let now = &mut now[whole.len()];
            *now = S::take(*now, V::part(last, 0.0)).keep(0, last.len(), *now);
        }
        for (part, now) in vectors.iter_mut().zip(now) {
            *part = now.array();
        }
    }
}

/// Joins the partial results of one output, into the first.
pub(super) struct JoinPartials<'a> {
    pub(super) fold: Fold,
    pub(super) parts: &'a mut [f32; PARTS],
}

impl WithLanes for JoinPartials<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        dispatch::<V>(self.fold, self);
    }
}

impl Folding for JoinPartials<'_> {
    #[inline(always)]
    fn with<V: Lanes, S: FoldStep>(self) {
        let (p, rest) = self.parts.as_chunks_mut::<LANES>();
        debug_assert!(rest.is_empty());
        let all = S::join(S::join(V::of(&p[0]), V::of(&p[1])), S::join(V::of(&p[2]), V::of(&p[3])));
        p[0] = all.array();
        for half in [8, 4, 2, 1] {
            // Lanes from `half` on come down; what comes into the upper ones is not read again.
            let mut down = [0f32; LANES];
            down[..LANES - half].copy_from_slice(&p[0][half..]);
            p[0] = S::join(V::of(&p[0]), V::of(&down)).array();
        }
    }
}

/// Takes one element each into the partial results of several outputs.
pub(super) struct TakeEach<'a> {
    pub(super) fold: Fold,
    pub(super) parts: &'a mut [f32],
    pub(super) x: &'a [f32],
    /// Outputs; what else the last vector of both has room for is taken along.
    pub(super) n: usize,
}

impl WithLanes for TakeEach<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        dispatch::<V>(self.fold, self);
    }
}

impl Folding for TakeEach<'_> {
    #[inline(always)]
    fn with<V: Lanes, S: FoldStep>(self) {
        let vectors = self.n.div_ceil(LANES);
        let (parts, _) = self.parts.as_chunks_mut::<LANES>();
        let (x, _) = self.x.as_chunks::<LANES>();
        for (part, x) in parts[..vectors].iter_mut().zip(x) {
            *part = S::take(V::of(part), V::of(x)).array();
        }
    }
}

/// Joins the partial results of several outputs, into the first of each: row i of `parts` has results number i.
pub(super) struct JoinEach<'a> {
    pub(super) fold: Fold,
    pub(super) parts: &'a mut [f32],
    pub(super) width: usize,
    /// Partial results that have elements; those without change nothing.
    pub(super) used: usize,
}

impl WithLanes for JoinEach<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        dispatch::<V>(self.fold, self);
    }
}

impl Folding for JoinEach<'_> {
    #[inline(always)]
    fn with<V: Lanes, S: FoldStep>(self) {
        let JoinEach { parts, width, used, .. } = self;
        for i in 0..LANES {
            join_rows::<V, S>(parts, width, used, i, 16 + i);
            join_rows::<V, S>(parts, width, used, 32 + i, 48 + i);
            join_rows::<V, S>(parts, width, used, i, 32 + i);
        }
        for half in [8, 4, 2, 1] {
            for i in 0..half {
                join_rows::<V, S>(parts, width, used, i, i + half);
            }
        }
    }
}

/// Joins partial results `from` into `to`, if there are any.
#[inline(always)]
fn join_rows<V: Lanes, S: FoldStep>(parts: &mut [f32], width: usize, used: usize, to: usize, from: usize) {
    if from >= used {
        return;
    }
    let (low, high) = parts.split_at_mut(from * width);
    let (to, _) = low[to * width..][..width].as_chunks_mut::<LANES>();
    let (from, _) = high[..width].as_chunks::<LANES>();
    for (to, from) in to.iter_mut().zip(from) {
        *to = S::join(V::of(to), V::of(from)).array();
    }
}
