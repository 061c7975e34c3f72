//! Unnormalised softmax weights of a row, and its largest logit.

use crate::isa::Isa;
use crate::simd::{LANES, Lanes, WithLanes, launch};
use yirage_ir::op::sample::{CHUNK, SampleFault, weight};

/// How logits become weights: the op's [`weight`].
#[derive(Clone, Copy, Debug)]
pub(super) struct SoftmaxWeights {
    pub(super) max: f32,
    pub(super) inverse: f32,
    /// Weights below this count as 0.
    pub(super) floor: f32,
}

impl SoftmaxWeights {
    /// The weight of one logit.
    pub(super) fn of(&self, logit: f32) -> f32 {
        weight(logit, self.max, self.inverse, self.floor)
    }

    /// The sum of the weights of a row.
    pub(super) fn sum(&self, isa: Isa, row: &[f32]) -> f64 {
        // SAFETY: the kernel holds slices alone, so it needs no promise.
        unsafe { launch(isa, WeightSumKernel { row, weights: *self }) }
    }
}

struct WeightSumKernel<'a> {
    row: &'a [f32],
    weights: SoftmaxWeights,
}

impl WithLanes for WeightSumKernel<'_> {
    type Out = f64;
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> f64 {
        let mut total = 0.0;
        for chunk in self.row.chunks(CHUNK) {
            total += chunk_sum::<V>(&self.weights, chunk);
        }
        total
    }
}

/// The sum of the weights of at most [`CHUNK`] logits.
#[inline(always)]
fn chunk_sum<V: Lanes>(w: &SoftmaxWeights, chunk: &[f32]) -> f64 {
    let (groups, rest) = chunk.as_chunks::<LANES>();
    let mut partial = V::splat(0.0);
    for group in groups {
        partial = partial.add(lanes(w, V::of(group)));
    }
    // Weights of lanes past the end are 0, which changes no sum.
    partial = partial.add(lanes(w, V::part(rest, f32::NEG_INFINITY)));
    let mut sum = 0.0;
    for lane in partial.array() {
        sum += f64::from(lane);
    }
    sum
}

/// The op's `weight` in lanes: the same operations in the same order, none fused.
#[inline(always)]
fn lanes<V: Lanes>(w: &SoftmaxWeights, logit: V) -> V {
    let x = logit.sub(V::splat(w.max)).mul(V::splat(w.inverse));
    let low = V::splat(-87.0);
    let clamped = x.max(low);
    let round = V::splat(12_582_912.0);
    let whole = clamped.mul(V::splat(std::f32::consts::LOG2_E)).add(round).sub(round);
    let r = clamped.sub(whole.mul(V::splat(0.693_359_4))).add(whole.mul(V::splat(2.121_944_4e-4)));
    let mut poly = V::splat(1.987_569_1e-4);
    for factor in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        poly = poly.mul(r).add(V::splat(factor));
    }
    let value = poly.mul(r).mul(r).add(r).add(V::splat(1.0)).mul(whole.pow2());
    let zero = V::splat(0.0);
    let weight = low.if_less(x, value, zero);
    weight.if_less(V::splat(w.floor), zero, weight)
}

/// The largest logit of a row and the first token that has it.
///
/// # Errors
/// `bad` of the first NaN or +infinity; [`SampleFault::Nothing`] when there is nothing above -infinity.
pub(super) fn largest(
    isa: Isa,
    row: &[f32],
    bad: impl Fn(u32, f32) -> SampleFault,
) -> Result<(usize, f32), SampleFault> {
    // SAFETY: the kernel holds slices alone, so it needs no promise.
    let best = unsafe { launch(isa, Largest(row)) };
    let (from, max) = best.map_err(|chunk| {
        let unusable = |logit: &f32| logit.is_nan() || *logit == f32::INFINITY;
        let within = row[chunk..].iter().position(unusable).unwrap_or(0);
        bad((chunk + within) as u32, row[chunk + within])
    })?;
    if max == f32::NEG_INFINITY {
        return Err(SampleFault::Nothing);
    }
    let within = row[from..].iter().position(|&logit| logit == max).unwrap_or(0);
    Ok((from + within, max))
}

struct Largest<'a>(&'a [f32]);

impl WithLanes for Largest<'_> {
    /// Where the chunk begins that first has the largest, and the largest; or where a chunk begins that has a NaN or
    /// +infinity.
    type Out = Result<(usize, f32), usize>;
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) -> Self::Out {
        let mut best = (0, f32::NEG_INFINITY);
        for (at, chunk) in self.0.chunks(CHUNK).enumerate() {
            let max = chunk_max::<V>(chunk).ok_or(at * CHUNK)?;
            if max > best.1 {
                best = (at * CHUNK, max);
            }
        }
        Ok(best)
    }
}

/// The largest of some logits; none if one is NaN or +infinity.
#[inline(always)]
pub(super) fn chunk_max<V: Lanes>(chunk: &[f32]) -> Option<f32> {
    let (zero, one, limit) = (V::splat(0.0), V::splat(1.0), V::splat(f32::INFINITY));
    let mut largest = [V::splat(f32::NEG_INFINITY); 4];
    let mut unusable = zero;
    let (groups, rest) = chunk.as_chunks::<LANES>();
    let (fours, few) = groups.as_chunks::<4>();
    for four in fours {
        for (group, largest) in four.iter().zip(&mut largest) {
            let x = V::of(group);
            *largest = x.max(*largest);
            unusable = x.if_less(limit, unusable, one);
        }
    }
    for group in few {
        let x = V::of(group);
        largest[0] = x.max(largest[0]);
        unusable = x.if_less(limit, unusable, one);
    }
    let x = V::part(rest, f32::NEG_INFINITY);
    largest[0] = x.max(largest[0]);
    unusable = x.if_less(limit, unusable, one);
    let max = largest[0].max(largest[1]).max(largest[2].max(largest[3])).largest();
    (!unusable.any_greater(zero)).then_some(max)
}
