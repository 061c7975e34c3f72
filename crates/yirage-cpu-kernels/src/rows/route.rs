//! The choice of experts.

use super::softmax::{Shifted, largest};
use super::{LaneFn, Src, map, reduce};
use crate::isa::Isa;
use crate::simd::{Lanes, WithLanes, launch, math};
use std::ops::Range;
use yirage_ir::op::Scoring;

/// Most experts of a layer.
pub const MAX_EXPERTS: usize = 1024;

/// How experts are chosen and weighted.
#[derive(Clone, Copy, Debug)]
pub struct RouteParams<'a> {
    /// Experts of the layer, at most [`MAX_EXPERTS`].
    pub experts: usize,
    /// Experts a token meets.
    pub top_k: usize,
    /// How logits become scores.
    pub scoring: Scoring,
    /// Whether the chosen weights are divided by their sum.
    pub normalize: bool,
    /// Factor of the weights, after normalisation.
    pub scale: f32,
    /// Added to the scores for the choice only.
    pub bias: Option<&'a [f32]>,
    /// Groups of experts (a divisor of `experts`); 1 is none.
    pub groups: usize,
    /// Groups that may be chosen from: those with the largest sums of their two best (DeepSeek-V3, 2024).
    pub top_groups: usize,
}

/// Weights and experts of the rows of a range, in rank order (best first; of equals the lower expert). `weights` and
/// `chosen` are `[rows.len()][top_k]`, the range's own part.
///
/// # Safety
/// Rows of the range exist in `logits` with `experts` elements.
///
/// # Panics
/// If the numbers of the route do not fit together.
pub unsafe fn route(
    isa: Isa,
    rows: Range<usize>,
    route: RouteParams<'_>,
    logits: Src,
    weights: &mut [f32],
    chosen: &mut [i32],
) {
    let reachable = route.experts.checked_div(route.groups).unwrap_or(0) * route.top_groups.min(route.groups);
    let fits = route.experts <= MAX_EXPERTS && route.groups > 0 && route.experts.is_multiple_of(route.groups);
    assert!(fits && route.top_k <= reachable, "cannot choose {} of {} experts: {route:?}", route.top_k, reachable);
    assert!(route.bias.is_none_or(|b| b.len() == route.experts), "one bias an expert");
    let wanted = rows.len() * route.top_k;
    assert!(weights.len() == wanted && chosen.len() == wanted, "room for {wanted} choices wanted");
    // SAFETY: `RouteKernel` wants what `route` promises of its rows.
    unsafe { launch(isa, RouteKernel { rows, route, logits, weights, chosen }) };
}

/// Needs the rows that [`route`] is promised.
struct RouteKernel<'a> {
    rows: Range<usize>,
    route: RouteParams<'a>,
    logits: Src,
    weights: &'a mut [f32],
    chosen: &'a mut [i32],
}

impl WithLanes for RouteKernel<'_> {
    type Out = ();
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let r = &self.route;
        let (mut scores, mut choice) = ([0f32; MAX_EXPERTS], [0f32; MAX_EXPERTS]);
        let (scores, choice) = (&mut scores[..r.experts], &mut choice[..r.experts]);
        for (i, row) in self.rows.enumerate() {
            // SAFETY: the contract of `route`.
            unsafe { score::<V>(r, self.logits.row(row), scores) };
            choice.copy_from_slice(scores);
            if let Some(bias) = r.bias {
                choice.iter_mut().zip(bias).for_each(|(c, b)| *c += b);
            }
            if r.groups > 1 {
                limit_groups(r, choice);
            }
            let weights = &mut self.weights[i * r.top_k..(i + 1) * r.top_k];
            let chosen = &mut self.chosen[i * r.top_k..(i + 1) * r.top_k];
            best(choice, chosen);
            weigh::<V>(r, scores, chosen, weights);
        }
    }
}

struct Sigmoid;
impl LaneFn for Sigmoid {
    #[inline(always)]
    fn at<V: Lanes>(&self, x: V) -> V {
        math::sigmoid(x)
    }
}

/// Logits of a row to scores.
///
/// # Safety
/// There are as many logits as scores.
#[inline(always)]
unsafe fn score<V: Lanes>(r: &RouteParams<'_>, logits: *const f32, scores: &mut [f32]) {
    let (n, out) = (scores.len(), scores.as_mut_ptr());
    // SAFETY: `score` is promised n logits; `Site` binds whole rows.
    unsafe {
        match r.scoring {
            Scoring::SoftmaxTopK => std::ptr::copy_nonoverlapping(logits, out, n),
            Scoring::Sigmoid => map::<V, _>(&Sigmoid, logits, out, n),
            Scoring::Softmax => {
                let shifted = Shifted { max: largest::<V>(logits, n) };
                let sum = reduce::<V, _>(&shifted, logits, n);
                map::<V, _>(&shifted, logits, out, n);
                scores.iter_mut().for_each(|s| *s /= sum);
            }
        }
    }
}

/// Whether a is the better choice: greater, or a number beside NaN.
fn better(a: f32, b: f32) -> bool {
    a > b || (b.is_nan() && !a.is_nan())
}

/// Experts outside the best groups lose their chance.
fn limit_groups(r: &RouteParams<'_>, choice: &mut [f32]) {
    let size = r.experts / r.groups;
    let mut values = [0f32; MAX_EXPERTS];
    for (g, members) in choice.chunks_exact(size).enumerate() {
        let (mut first, mut second) = (f32::NEG_INFINITY, f32::NEG_INFINITY);
        for &m in members {
            if m > first {
                (first, second) = (m, first);
            } else if m > second {
                second = m;
            }
        }
        values[g] = if size > 1 { first + second } else { first };
    }
    let mut kept = [0i32; MAX_EXPERTS];
    let kept = &mut kept[..r.top_groups];
    best(&values[..r.groups], kept);
    for (g, members) in choice.chunks_exact_mut(size).enumerate() {
        if !kept.contains(&(g as i32)) {
            members.fill(f32::NEG_INFINITY);
        }
    }
}

/// Indices of the largest values, best first, the lower index first among equals.
fn best(values: &[f32], out: &mut [i32]) {
    for rank in 0..out.len() {
        let mut top: Option<usize> = None;
        for (i, &v) in values.iter().enumerate() {
            if top.is_none_or(|t| better(v, values[t])) && !out[..rank].contains(&(i as i32)) {
                top = Some(i);
            }
        }
        out[rank] = top.map_or(0, |t| t as i32);
    }
}

/// Weights of the chosen: their scores, made to sum 1 if wanted, times the factor.
#[inline(always)]
fn weigh<V: Lanes>(r: &RouteParams<'_>, scores: &[f32], chosen: &[i32], weights: &mut [f32]) {
    for (w, &e) in weights.iter_mut().zip(chosen) {
        *w = scores[e as usize];
    }
    if r.scoring == Scoring::SoftmaxTopK {
        let max = weights.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        for w in weights.iter_mut() {
            *w = math::exp(V::splat(*w - max)).array()[0];
        }
    }
    if r.normalize || r.scoring == Scoring::SoftmaxTopK {
        let sum: f32 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= sum);
    }
    weights.iter_mut().for_each(|w| *w *= r.scale);
}
