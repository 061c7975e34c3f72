//! Draws: a token by its weight, of the whole row or of what top-k and top-p keep of it.

use super::adjust::LogitRow;
use super::random::uniform;
use super::weight::{ChunkSums, Weighting, chunks};
use super::{RowSurvey, SampleKernel};
use crate::double::{self, Double};
use crate::elements::Elements;
use crate::exact_division::divide;
use crate::op::row_group::{LEAST_KEY, for_each_element, order_key};
use crate::op::row_prefix::{KeyedRow, RowPrefix};
use crate::wide::{self, Wide};
use yirage_ir::op::sample::{CHUNK, GREEDY_BELOW, SampleInput};
use yirage_kir::{KernelMemory, KernelWriter, Register, ScalarType, UnaryFunction, Variable};

/// Memory of draws, for each sequence.
pub(super) struct DrawMemory {
    /// The weight of each token.
    pub(super) weights: Elements,
    /// Tokens that were kept, in ascending order.
    pub(super) kept: Elements,
    /// How many tokens each thread keeps.
    pub(super) counts: KernelMemory,
}

/// What a sequence wants.
struct Draw<'a> {
    s: Register,
    row: &'a LogitRow,
    end: Register,
    weighting: Weighting,
    uniform: Double,
    top_k: Register,
    top_p: Register,
    /// Whether only so many likeliest are kept.
    is_limited: Register,
    /// Where the row's weights and kept tokens begin.
    first: Register,
    /// The sum of the row's weights, unless only so many are kept.
    total: [Variable; 2],
    /// The chosen token, in the first thread.
    token: Variable,
}

/// A running sum of weights that stops at a target.
struct Pick {
    target: Double,
    reached: [Variable; 2],
    token: Variable,
    is_done: Variable,
}

impl Pick {
    fn new(w: &mut KernelWriter, target: Double, token: Variable) -> Pick {
        let (nothing, no) = (double::zero(w), w.u32(0));
        Pick { target, reached: nothing.map(|word| w.variable(word)), token, is_done: w.variable(no) }
    }

    /// Goes past a token: the first at which the sum exceeds the target is the last that has a weight.
    fn pass(&self, w: &mut KernelWriter, token: Register, weight: Register) {
        let (no, nothing) = (w.u32(0), w.f32(0.0));
        let is_done = w.get(self.is_done);
        let (goes_on, counts) = (w.equal(is_done, no), w.less(nothing, weight));
        let passes = w.and(goes_on, counts);
        w.when(passes, |w| {
            let (weight, so_far) = (double::of_f32(w, weight), self.reached.map(|word| w.get(word)));
            let reached = double::add(w, so_far, weight);
            (0..2).for_each(|word| w.set(self.reached[word], reached[word]));
            w.set(self.token, token);
            let is_above = double::less(w, self.target, reached);
            let is_done = w.convert(ScalarType::U32, is_above);
            w.set(self.is_done, is_done);
        });
    }
}

/// A body for all threads or none.
fn when_all(w: &mut KernelWriter, condition: Register, body: impl FnOnce(&mut KernelWriter)) {
    // What WGSL takes a condition's uniformity from is narrower than what it takes for a loop's bounds.
    let (zero, one) = (w.u32(0), w.u32(1));
    let rounds = w.select(condition, one, zero);
    w.for_each(zero, rounds, one, |w, _| body(w));
}

impl SampleKernel<'_> {
    /// The token of a row whose first `end` logits count, in the first thread.
    pub(super) fn draw(
        &self,
        w: &mut KernelWriter,
        s: Register,
        row: &LogitRow,
        survey: &RowSurvey,
        end: Register,
    ) -> Register {
        let (Some(memory), Some(sums)) = (&self.draw_memory, &self.sums) else { return survey.best };
        let of = |w: &mut KernelWriter, slot| self.input(slot).load(w, s);
        let temperature = of(w, SampleInput::Temperature);
        let (top_k, top_p, floor) = (of(w, SampleInput::TopK), of(w, SampleInput::TopP), of(w, SampleInput::MinP));
        let (one, all) = (w.f32(1.0), w.u32(self.vocabulary));
        let inverse = divide(w, one, temperature);
        let largest = self.value_or_zero(w, row, survey.best, end);
        let top_k = w.bitcast(ScalarType::U32, top_k);
        let is_limited = {
            let one = w.u32(1);
            let (before, most) = (w.sub(top_k, one), w.sub(all, one));
            w.less(before, most)
        };
        let token = w.variable(survey.best);
        let nothing = double::zero(w);
        let draw = Draw {
            s,
            total: nothing.map(|word| w.variable(word)),
            row,
            end,
            weighting: Weighting { largest, inverse, floor },
            uniform: self.uniform(w, s),
            top_k,
            top_p,
            is_limited,
            first: w.mul(s, all),
            token,
        };
        let greedy = w.f32(GREEDY_BELOW);
        let is_greedy = w.less(temperature, greedy);
        let is_drawn = w.unary(UnaryFunction::Not, is_greedy);
        let keeps_all = w.less_equal(one, top_p);
        let narrows = w.unary(UnaryFunction::Not, keeps_all);
        let is_filtered = w.or(is_limited, narrows);
        when_all(w, is_drawn, |w| {
            let is_unlimited = w.unary(UnaryFunction::Not, is_limited);
            when_all(w, is_unlimited, |w| {
                let sum = self.total(w, s, row, &draw.weighting, sums, end);
                (0..2).for_each(|word| w.set(draw.total[word], sum[word]));
            });
            let is_whole = w.unary(UnaryFunction::Not, is_filtered);
            when_all(w, is_whole, |w| self.draw_from_all(w, &draw, sums));
            when_all(w, is_filtered, |w| self.draw_from_kept(w, &draw, memory));
        });
        w.get(token)
    }

    fn uniform(&self, w: &mut KernelWriter, s: Register) -> Double {
        let five = w.u32(5);
        let first = w.mul(s, five);
        let key = [0, 1, 2, 3, 4].map(|word| {
            let word = w.u32(word);
            let at = w.add(first, word);
            self.input(SampleInput::Key).load(w, at)
        });
        uniform(w, key)
    }

    /// The draw from a whole row: a chunk before the chosen one costs one difference.
    fn draw_from_all(&self, w: &mut KernelWriter, draw: &Draw<'_>, sums: &ChunkSums) {
        let (thread, zero, one) = (w.thread(), w.u32(0), w.u32(1));
        let (is_first, is_row) = (w.equal(thread, zero), w.less(zero, draw.end));
        let is_first = w.and(is_first, is_row);
        w.when(is_first, |w| {
            let total = draw.total.map(|word| w.get(word));
            let target = double::mul(w, draw.uniform, total);
            let target = target.map(|word| w.variable(word));
            let (is_done, nobody, count) = (w.variable(zero), w.u32(u32::MAX), w.u32(chunks(self.vocabulary)));
            let last = w.variable(nobody);
            w.for_each(zero, count, one, |w, chunk| {
                let done = w.get(is_done);
                let goes_on = w.equal(done, zero);
                w.when(goes_on, |w| {
                    let sum = sums.load(w, draw.s, self.vocabulary, chunk);
                    let (is_nothing, left) = (wide::is_zero(w, sum), target.map(|word| w.get(word)));
                    let before = w.get(last);
                    let next = w.select(is_nothing, before, chunk);
                    w.set(last, next);
                    let is_here = double::less(w, left, sum);
                    w.either(
                        is_here,
                        |w| w.set(is_done, one),
                        |w| {
                            let left = double::sub(w, left, sum);
                            (0..2).for_each(|word| w.set(target[word], left[word]));
                        },
                    );
                });
            });
            let (last, target) = (w.get(last), target.map(|word| w.get(word)));
            let is_chunk = w.not_equal(last, nobody);
            w.when(is_chunk, |w| {
                let length = w.u32(CHUNK as u32);
                let from = w.mul(last, length);
                let to = w.add(from, length);
                let (to, pick) = (w.min(to, draw.end), Pick::new(w, target, draw.token));
                w.for_each(from, to, one, |w, token| {
                    let logit = draw.row.load(w, token);
                    let weight = draw.weighting.of(w, logit);
                    pick.pass(w, token, weight);
                });
            });
        });
    }

    /// The draw from what top-k and top-p keep.
    fn draw_from_kept(&self, w: &mut KernelWriter, draw: &Draw<'_>, memory: &DrawMemory) {
        for_each_element(w, draw.end, |w, token| {
            let (logit, at) = (draw.row.load(w, token), w.add(draw.first, token));
            let weight = draw.weighting.of(w, logit);
            memory.weights.store(w, at, weight);
        });
        let (least, zero) = (w.u32(LEAST_KEY), w.u32(0));
        let (key, token) = (w.variable(least), w.variable(zero));
        let keyed = KeyedRow {
            words: &self.words,
            width: self.vocabulary,
            end: draw.end,
            key: |w: &mut KernelWriter, token: Register| {
                let logit = draw.row.load(w, token);
                order_key(w, logit)
            },
        };
        let nothing = double::zero(w);
        let total = nothing.map(|word| w.variable(word));
        let no_floor = w.f32(0.0);
        let floor = w.variable(no_floor);
        when_all(w, draw.is_limited, |w| {
            let (one, zero) = (w.u32(1), w.u32(0));
            let kept = keyed.shortest_prefix(w, [draw.top_k, zero], |w, key, _| {
                let is_possible = w.less(least, key);
                [w.select(is_possible, one, zero), zero]
            });
            w.set(key, kept.key);
            w.set(token, kept.index);
            let measure = |w: &mut KernelWriter, _: Register, token: Register| self.mass(w, draw, memory, token);
            let mass = keyed.measured(w, &measure, |w, key, token| kept.has(w, key, token));
            let mass = double::of_wide(w, mass);
            (0..2).for_each(|word| w.set(total[word], mass[word]));
        });
        let is_unlimited = w.unary(UnaryFunction::Not, draw.is_limited);
        when_all(w, is_unlimited, |w| {
            let sum = draw.total.map(|word| w.get(word));
            // No token below a part of what top-p leaves out can be kept: a quarter of it, so that no rounding matters.
            let (whole, quarter, one) = (double::to_f32(w, sum), w.f32(0.25 / self.vocabulary as f32), w.f32(1.0));
            let rest = w.sub(one, draw.top_p);
            let least = w.mul(rest, quarter);
            let least = w.mul(least, whole);
            w.set(floor, least);
            let units = w.u32(40);
            let mass = double::scaled(w, sum, units);
            (0..2).for_each(|word| w.set(total[word], mass[word]));
        });
        let limit = RowPrefix { key: w.get(key), index: w.get(token) };
        let floor = w.get(floor);
        let (one, zero) = (w.f32(1.0), w.f32(0.0));
        let narrows = w.less(draw.top_p, one);
        when_all(w, narrows, |w| {
            let is_share = w.less(zero, draw.top_p);
            let share = w.select(is_share, draw.top_p, zero);
            let (share, total) = (double::of_f32(w, share), total.map(|word| w.get(word)));
            let target = double::mul(w, total, share);
            let target = double::ceil(w, target);
            // One token is always kept.
            let (is_nothing, least) = (wide::is_zero(w, target), wide::wide(w, 1));
            let target = wide::select(w, is_nothing, least, target);
            let kept = keyed.shortest_prefix(w, target, |w, key, token| {
                let is_kept = self.is_kept(w, draw, memory, &limit, floor, key, token);
                let (mass, nothing) = (self.mass(w, draw, memory, token), wide::wide(w, 0));
                wide::select(w, is_kept, mass, nothing)
            });
            w.set(key, kept.key);
            w.set(token, kept.index);
        });
        let nucleus = RowPrefix { key: w.get(key), index: w.get(token) };
        let is_kept = |w: &mut KernelWriter, key: Register, token: Register| {
            let limited = self.is_kept(w, draw, memory, &limit, floor, key, token);
            let inside = nucleus.has(w, key, token);
            w.and(limited, inside)
        };
        let count = keyed.compact(w, memory.counts, is_kept, |w, place, token, _| {
            let at = w.add(draw.first, place);
            memory.kept.store(w, at, token);
        });
        self.pick_kept(w, draw, memory, count);
    }

    fn weight(&self, w: &mut KernelWriter, draw: &Draw<'_>, memory: &DrawMemory, token: Register) -> Register {
        let at = w.add(draw.first, token);
        memory.weights.load(w, at)
    }

    /// A token's weight in units of 2^-40, to the nearest.
    fn mass(&self, w: &mut KernelWriter, draw: &Draw<'_>, memory: &DrawMemory, token: Register) -> Wide {
        let weight = self.weight(w, draw, memory, token);
        let bits = w.bitcast(ScalarType::U32, weight);
        let (place, fraction, leading) = (w.u32(23), w.u32(0x007f_ffff), w.u32(0x0080_0000));
        let exponent = w.shr(bits, place);
        let mantissa = w.and(bits, fraction);
        let mantissa = w.or(mantissa, leading);
        // The mantissa is a whole number where its lowest bit counts 2^-40.
        let (whole, zero, one, most) = (w.u32(127 + 23 - 40), w.u32(0), w.u32(1), w.u32(32));
        let is_large = w.less_equal(whole, exponent);
        let (up, down) = (w.sub(exponent, whole), w.sub(whole, exponent));
        let (up, down) = (w.select(is_large, up, zero), w.select(is_large, one, down));
        let down = w.min(down, most);
        let before = w.sub(down, one);
        let halves = w.shr(mantissa, before);
        let halves = w.add(halves, one);
        let small = w.shr(halves, one);
        let large = wide::shl(w, [mantissa, zero], up);
        wide::select(w, is_large, large, [small, zero])
    }

    /// Whether a token may be drawn before top-p is looked at.
    #[expect(clippy::too_many_arguments, reason = "what a token is, and all that it is judged by")]
    fn is_kept(
        &self,
        w: &mut KernelWriter,
        draw: &Draw<'_>,
        memory: &DrawMemory,
        limit: &RowPrefix,
        floor: Register,
        key: Register,
        token: Register,
    ) -> Register {
        let (weight, inside) = (self.weight(w, draw, memory, token), limit.has(w, key, token));
        let (reaches, least) = (w.less_equal(floor, weight), w.u32(LEAST_KEY));
        let inside = w.and(inside, reaches);
        let is_possible = w.less(least, key);
        w.and(inside, is_possible)
    }

    /// The token of the first `count` kept ones at which the sum of their weights exceeds the random number's share.
    fn pick_kept(&self, w: &mut KernelWriter, draw: &Draw<'_>, memory: &DrawMemory, count: Register) {
        let (thread, zero, one) = (w.thread(), w.u32(0), w.u32(1));
        let is_first = w.equal(thread, zero);
        w.when(is_first, |w| {
            let nothing = double::zero(w);
            let sum = nothing.map(|word| w.variable(word));
            let end = w.add(draw.first, count);
            w.for_each(draw.first, end, one, |w, at| {
                let token = memory.kept.load_word(w, at);
                let (weight, so_far) = (self.weight(w, draw, memory, token), sum.map(|word| w.get(word)));
                let weight = double::of_f32(w, weight);
                let next = double::add(w, so_far, weight);
                (0..2).for_each(|word| w.set(sum[word], next[word]));
            });
            let sum = sum.map(|word| w.get(word));
            let target = double::mul(w, draw.uniform, sum);
            let pick = Pick::new(w, target, draw.token);
            w.for_each(draw.first, end, one, |w, at| {
                let token = memory.kept.load_word(w, at);
                let weight = self.weight(w, draw, memory, token);
                pick.pass(w, token, weight);
            });
        });
    }
}
