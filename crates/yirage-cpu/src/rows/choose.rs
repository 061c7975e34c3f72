//! The largest of a row of logits, and the tokens that sampling may choose from.

use super::reduce;
use super::softmax::largest;
use crate::isa::Isa;
use crate::simd::{Kernel, LANES, Lanes, launch, math};
use std::cmp::Ordering;

/// Index of the largest element, the first of equals; NaN is passed over. 0 if there is none.
pub fn argmax(isa: Isa, x: &[f32]) -> usize {
    let max = launch(isa, Largest(x));
    x.iter().position(|&v| v == max).unwrap_or(0)
}

struct Largest<'a>(&'a [f32]);

impl Kernel for Largest<'_> {
    type Out = f32;
    #[inline(always)]
    fn run<V: Lanes>(self) -> f32 {
        // SAFETY: the slice has its length.
        unsafe { largest::<V>(self.0.as_ptr(), self.0.len()) }
    }
}

/// Which tokens may be sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Filter {
    /// Logits are divided by it; 0 leaves the best token alone.
    pub temperature: f32,
    /// Best tokens kept; 0 is all.
    pub top_k: usize,
    /// Of these, the fewest whose probabilities sum to at least this; 1 or more is all.
    pub top_p: f32,
    /// Of these, those at least this likely relative to the best; 0 is all.
    pub min_p: f32,
}

/// A token that may be sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Index of the logit.
    pub id: u32,
    /// Its probability among the candidates.
    pub probability: f32,
}

/// Width of a bucket in natural logarithms of probability, inverse.
const PER_NAT: f32 = 8.0;
/// Buckets; what is less likely than `e^-(BUCKETS / PER_NAT)` of the best falls in the last.
const BUCKETS: usize = 512;

/// The tokens that pass the filter, most likely first (of equals the lower id), unless nothing limits them: then in
/// order of ids. Tokens of -inf or NaN are never among them; there is always at least one unless all are. Two passes
/// over the logits; only the few that can pass are sorted.
pub fn candidates(isa: Isa, logits: &[f32], filter: Filter, out: &mut Vec<Candidate>) {
    out.clear();
    let max = launch(isa, Largest(logits));
    if max == f32::NEG_INFINITY {
        return;
    }
    if filter.temperature <= 0.0 || !max.is_finite() {
        let id = logits.iter().position(|&v| v == max).unwrap_or(0) as u32;
        out.push(Candidate { id, probability: 1.0 });
        return;
    }
    // Colder than this only the best token is left anyway.
    let inverse = 1.0 / filter.temperature.max(1e-6);
    let limited = filter.top_k > 0 || filter.top_p < 1.0;
    let total = if filter.top_k == 0 && filter.top_p < 1.0 { total(isa, logits, max, inverse) } else { 0.0 };
    let last = if limited { last_bucket(isa, logits, max, inverse, &filter, total) } else { BUCKETS };
    // The logit stands in for the probability until all are sorted: it alone tells close ones apart.
    for (id, &x) in logits.iter().enumerate() {
        if x > f32::NEG_INFINITY && bucket(x, max, inverse) <= last {
            out.push(Candidate { id: id as u32, probability: x });
        }
    }
    if limited {
        // No NaN came in; the two zeros are equal.
        let order = |a: &Candidate, b: &Candidate| b.probability.partial_cmp(&a.probability).unwrap_or(Ordering::Equal);
        out.sort_unstable_by(|a, b| order(a, b).then(a.id.cmp(&b.id)));
        if filter.top_k > 0 {
            out.truncate(filter.top_k);
        }
    }
    launch(isa, Exponentials { of: out, max, inverse });
    if filter.top_p < 1.0 {
        let total = if filter.top_k > 0 { out.iter().map(|c| f64::from(c.probability)).sum() } else { total };
        keep_mass(out, f64::from(filter.top_p) * total);
    }
    if filter.min_p > 0.0 {
        // The best has probability 1 here.
        out.retain(|c| c.probability >= filter.min_p.min(1.0));
    }
    let sum: f64 = out.iter().map(|c| f64::from(c.probability)).sum();
    out.iter_mut().for_each(|c| c.probability = (f64::from(c.probability) / sum) as f32);
}

/// The bucket of a logit: 0 holds the best.
#[inline(always)]
fn bucket(x: f32, max: f32, inverse: f32) -> usize {
    // NaN and huge distances become the last one by the saturating cast and the minimum.
    let distance = (max - x) * inverse * PER_NAT;
    if distance.is_nan() { BUCKETS } else { (distance as usize).min(BUCKETS - 1) }
}

struct Total<'a> {
    logits: &'a [f32],
    max: f32,
    inverse: f32,
}

struct Scaled {
    max: f32,
    inverse: f32,
}

impl super::Term for Scaled {
    #[inline(always)]
    fn fill(&self) -> f32 {
        f32::NEG_INFINITY
    }
    #[inline(always)]
    fn take<V: Lanes>(&self, acc: V, x: V) -> V {
        // The maximum puts -inf for NaN, which then counts nothing.
        let x = x.max(V::splat(f32::NEG_INFINITY)).sub(V::splat(self.max));
        acc.add(math::exp(x.mul(V::splat(self.inverse))))
    }
}

impl Kernel for Total<'_> {
    type Out = f64;
    #[inline(always)]
    fn run<V: Lanes>(self) -> f64 {
        let term = Scaled { max: self.max, inverse: self.inverse };
        let mut sum = 0f64;
        // Chunks keep the f32 sums short.
        for chunk in self.logits.chunks(4096) {
            // SAFETY: the slice has its length.
            sum += f64::from(unsafe { reduce::<V, _>(&term, chunk.as_ptr(), chunk.len()) });
        }
        sum
    }
}

/// Sum of the probabilities of all tokens, relative to the best's.
fn total(isa: Isa, logits: &[f32], max: f32, inverse: f32) -> f64 {
    launch(isa, Total { logits, max, inverse })
}

/// Tokens and probability that lie in each bucket.
struct Spread<'a> {
    logits: &'a [f32],
    max: f32,
    inverse: f32,
    counts: &'a mut [u32; BUCKETS],
    mass: &'a mut [f64; BUCKETS],
}

impl Kernel for Spread<'_> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes>(self) {
        for part in self.logits.chunks(LANES) {
            let x = V::part(part, f32::NEG_INFINITY).sub(V::splat(self.max));
            let p = math::exp(x.mul(V::splat(self.inverse))).array();
            for (&x, p) in part.iter().zip(p) {
                if x > f32::NEG_INFINITY {
                    let b = bucket(x, self.max, self.inverse);
                    self.counts[b] += 1;
                    self.mass[b] += f64::from(p);
                }
            }
        }
    }
}

/// The last bucket that can hold a token that passes top-k or, without top-k, top-p.
fn last_bucket(isa: Isa, logits: &[f32], max: f32, inverse: f32, filter: &Filter, total: f64) -> usize {
    let (mut counts, mut mass) = ([0u32; BUCKETS], [0f64; BUCKETS]);
    launch(isa, Spread { logits, max, inverse, counts: &mut counts, mass: &mut mass });
    // The margin covers the rounding of sums in other orders.
    let goal = (f64::from(filter.top_p) + 1e-5) * total;
    let (mut tokens, mut sum) = (0usize, 0f64);
    for b in 0..BUCKETS {
        tokens += counts[b] as usize;
        sum += mass[b];
        let enough = if filter.top_k > 0 { tokens >= filter.top_k } else { sum >= goal };
        if enough {
            return b;
        }
    }
    BUCKETS - 1
}

/// Logits to probabilities relative to the best.
struct Exponentials<'a> {
    of: &'a mut [Candidate],
    max: f32,
    inverse: f32,
}

impl Kernel for Exponentials<'_> {
    type Out = ();
    #[inline(always)]
    fn run<V: Lanes>(self) {
        for part in self.of.chunks_mut(LANES) {
            let mut x = [0f32; LANES];
            x.iter_mut().zip(part.iter()).for_each(|(x, c)| *x = c.probability);
            let x = V::of(&x).sub(V::splat(self.max)).mul(V::splat(self.inverse));
            let p = math::exp(x).array();
            part.iter_mut().zip(p).for_each(|(c, p)| c.probability = p);
        }
    }
}

/// Keeps the shortest beginning whose sum reaches `goal`, and at least one.
fn keep_mass(sorted: &mut Vec<Candidate>, goal: f64) {
    let mut sum = 0f64;
    let kept = sorted.iter().position(|c| {
        sum += f64::from(c.probability);
        sum >= goal
    });
    if let Some(last) = kept {
        sorted.truncate(last + 1);
    }
}
