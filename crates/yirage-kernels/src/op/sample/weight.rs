//! Weights of tokens, and their sums, as the op defines them.

use super::SampleKernel;
use super::adjust::LogitRow;
use crate::double::{self, Double};
use crate::elements::Elements;
use crate::op::row_group::THREADS;
use yirage_ir::op::sample::CHUNK;
use yirage_kir::{KernelWriter, Register, ScalarType, UnaryFunction};

/// Partial sums of a chunk.
const PARTS: u32 = 16;

/// How logits become weights.
#[derive(Clone, Copy)]
pub(super) struct Weighting {
    pub(super) largest: Register,
    pub(super) inverse: Register,
    /// Weights below it are 0.
    pub(super) floor: Register,
}

impl Weighting {
    pub(super) fn of(&self, w: &mut KernelWriter, logit: Register) -> Register {
        let less = w.sub(logit, self.largest);
        let scaled = w.mul(less, self.inverse);
        let weight = exp(w, scaled);
        let (is_kept, zero) = (w.less_equal(self.floor, weight), w.f32(0.0));
        w.select(is_kept, weight, zero)
    }
}

/// The op's `e^x`. A number is rounded to a whole one by itself: compilers take away what is added and taken off again.
fn exp(w: &mut KernelWriter, x: Register) -> Register {
    let (low, log2e) = (w.f32(-87.0), w.f32(std::f32::consts::LOG2_E));
    let is_inside = w.less(low, x);
    let clamped = w.select(is_inside, x, low);
    let scaled = w.mul(clamped, log2e);
    let whole = w.unary(UnaryFunction::Round, scaled);
    let (first, second) = (w.f32(0.693_359_4), w.f32(2.121_944_4e-4));
    let (first, second) = (w.mul(whole, first), w.mul(whole, second));
    let r = w.sub(clamped, first);
    let r = w.add(r, second);
    let mut poly = w.f32(1.987_569_1e-4);
    for factor in [1.398_199_9e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        let (product, factor) = (w.mul(poly, r), w.f32(factor));
        poly = w.add(product, factor);
    }
    let power = {
        let (exponent, bias) = (w.convert(ScalarType::I32, whole), w.i32(127));
        let biased = w.add(exponent, bias);
        let (biased, place) = (w.bitcast(ScalarType::U32, biased), w.u32(23));
        let bits = w.shl(biased, place);
        w.bitcast(ScalarType::F32, bits)
    };
    let one = w.f32(1.0);
    let value = w.mul(poly, r);
    let value = w.mul(value, r);
    let value = w.add(value, r);
    let value = w.add(value, one);
    let value = w.mul(value, power);
    let zero = w.f32(0.0);
    w.select(is_inside, value, zero)
}

/// Where the sums of a sequence's chunks lie.
pub(super) struct ChunkSums {
    /// Partial sums of each chunk.
    pub(super) parts: Elements,
    /// The sum of each, two words.
    pub(super) sums: Elements,
}

impl ChunkSums {
    /// Floats of partial sums of a vocabulary, and words of sums.
    pub(super) fn widths(vocabulary: u32) -> [u32; 2] {
        let chunks = chunks(vocabulary);
        [chunks * PARTS, chunks * 2]
    }

    /// The sum of a chunk of sequence `s`.
    pub(super) fn load(&self, w: &mut KernelWriter, s: Register, vocabulary: u32, chunk: Register) -> Double {
        let at = sum_place(w, s, vocabulary, chunk);
        let one = w.u32(1);
        let next = w.add(at, one);
        [self.sums.load_word(w, at), self.sums.load_word(w, next)]
    }
}

pub(super) fn chunks(vocabulary: u32) -> u32 {
    vocabulary.div_ceil(CHUNK as u32)
}

fn sum_place(w: &mut KernelWriter, s: Register, vocabulary: u32, chunk: Register) -> Register {
    let (width, two) = (w.u32(ChunkSums::widths(vocabulary)[1]), w.u32(2));
    let (row, within) = (w.mul(s, width), w.mul(chunk, two));
    w.add(row, within)
}

impl SampleKernel<'_> {
    /// The sum of the weights of a row, in every thread, and those of its chunks in memory; of no row 0. All threads come
    /// here.
    pub(super) fn total(
        &self,
        w: &mut KernelWriter,
        s: Register,
        row: &LogitRow,
        weighting: &Weighting,
        memory: &ChunkSums,
        end: Register,
    ) -> Double {
        let [parts, _] = ChunkSums::widths(self.vocabulary);
        let (zero, one, threads, thread) = (w.u32(0), w.u32(1), w.u32(THREADS), w.thread());
        let is_row = w.less(zero, end);
        let limit = |w: &mut KernelWriter, count: u32| {
            let count = w.u32(count);
            w.select(is_row, count, zero)
        };
        let width = w.u32(parts);
        let first = w.mul(s, width);
        let items = limit(w, parts);
        w.for_each(thread, items, threads, |w, item| {
            let sum = self.part(w, row, weighting, item, end);
            let at = w.add(first, item);
            memory.parts.store(w, at, sum);
        });
        w.barrier();
        let count = limit(w, chunks(self.vocabulary));
        w.for_each(thread, count, threads, |w, chunk| {
            let (each, nothing) = (w.u32(PARTS), double::zero(w));
            let sum = nothing.map(|word| w.variable(word));
            let from = w.mul(chunk, each);
            let from = w.add(first, from);
            let to = w.add(from, each);
            w.for_each(from, to, one, |w, at| {
                let part = memory.parts.load(w, at);
                let (part, so_far) = (double::of_f32(w, part), sum.map(|word| w.get(word)));
                let next = double::add(w, so_far, part);
                (0..2).for_each(|word| w.set(sum[word], next[word]));
            });
            let (made, at) = (sum.map(|word| w.get(word)), sum_place(w, s, self.vocabulary, chunk));
            let next = w.add(at, one);
            memory.sums.store(w, at, made[0]);
            memory.sums.store(w, next, made[1]);
        });
        w.barrier();
        let nothing = double::zero(w);
        let total = nothing.map(|word| w.variable(word));
        w.for_each(zero, count, one, |w, chunk| {
            let (sum, so_far) = (memory.load(w, s, self.vocabulary, chunk), total.map(|word| w.get(word)));
            let next = double::add(w, so_far, sum);
            (0..2).for_each(|word| w.set(total[word], next[word]));
        });
        // What is in memory may be used for another sum.
        w.barrier();
        total.map(|word| w.get(word))
    }

    /// A partial sum: every 16th weight of a chunk.
    fn part(
        &self,
        w: &mut KernelWriter,
        row: &LogitRow,
        weighting: &Weighting,
        item: Register,
        end: Register,
    ) -> Register {
        let (parts, length) = (w.u32(PARTS), w.u32(CHUNK as u32));
        let (chunk, part) = (w.div(item, parts), w.rem(item, parts));
        let first = w.mul(chunk, length);
        let (from, to) = (w.add(first, part), w.add(first, length));
        let (to, zero) = (w.min(to, end), w.f32(0.0));
        let sum = w.variable(zero);
        w.for_each(from, to, parts, |w, token| {
            let logit = row.load(w, token);
            let (weight, so_far) = (weighting.of(w, logit), w.get(sum));
            let next = w.add(so_far, weight);
            w.set(sum, next);
        });
        w.get(sum)
    }
}
