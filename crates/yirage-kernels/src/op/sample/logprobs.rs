//! Log-probabilities of a row's logits as they were given.

use super::adjust::LogitRow;
use super::weight::Weighting;
use super::{RowSurvey, SampleKernel};
use crate::double::{self, Double};
use crate::double_log::ln;
use crate::op::row_group::{LEAST_KEY, for_each_element, order_key};
use crate::wide;
use yirage_kir::{KernelWriter, Register, ScalarType, UnaryFunction};

/// The largest logit of a row, and the logarithm of the sum of its weights.
struct RowTotal {
    largest: Register,
    ln: Double,
}

impl SampleKernel<'_> {
    /// Writes the log-probability of the chosen token, which the first thread knows, and those of the likeliest. `end` is 0
    /// where there is no token. All threads come here.
    pub(super) fn logprobs(
        &self,
        w: &mut KernelWriter,
        s: Register,
        given: &LogitRow,
        survey: &RowSurvey,
        token: Register,
        end: Register,
    ) {
        let Some(sums) = self.sums.as_ref().filter(|_| self.op.logprobs) else { return };
        let largest = self.value_or_zero(w, given, survey.best, end);
        let (one, no_floor) = (w.f32(1.0), w.f32(0.0));
        let weighting = Weighting { largest, inverse: one, floor: no_floor };
        let sum = self.total(w, s, given, &weighting, sums, end);
        let row = RowTotal { largest, ln: ln(w, sum) };
        let (thread, zero) = (w.thread(), w.u32(0));
        let is_first = w.equal(thread, zero);
        w.when(is_first, |w| {
            let logprob = self.logprob(w, given, &row, token, end);
            self.outs[2].store(w, s, logprob);
        });
        if self.op.top > 0 {
            self.likeliest(w, s, given, &row, end);
        }
    }

    /// The logarithm of a token's share; -infinity where there is no token.
    fn logprob(
        &self,
        w: &mut KernelWriter,
        given: &LogitRow,
        row: &RowTotal,
        token: Register,
        end: Register,
    ) -> Register {
        let (nothing, inside) = (w.f32(f32::NEG_INFINITY), w.less(token, end));
        let made = w.variable(nothing);
        w.when(inside, |w| {
            let logit = given.load(w, token);
            let is_possible = w.less(nothing, logit);
            w.when(is_possible, |w| {
                let below = below(w, row.largest, logit);
                let sum = double::add(w, below, row.ln);
                let sum = double::to_f32(w, sum);
                let logprob = w.unary(UnaryFunction::Neg, sum);
                w.set(made, logprob);
            });
        });
        w.get(made)
    }

    /// Writes the likeliest tokens one by one: each is the best of those behind the one before.
    fn likeliest(&self, w: &mut KernelWriter, s: Register, given: &LogitRow, row: &RowTotal, end: Register) {
        let (zero, one, top, none) = (w.u32(0), w.u32(1), w.u32(self.op.top), w.u32(u32::MAX));
        let (last_key, last) = (w.variable(none), w.variable(none));
        let first = w.mul(s, top);
        w.for_each(zero, top, one, |w, rank| {
            let (before_key, before) = (w.get(last_key), w.get(last));
            let least = w.u32(LEAST_KEY);
            let (key, best) = (w.variable(least), w.variable(none));
            for_each_element(w, end, |w, token| {
                let logit = given.load(w, token);
                let own = order_key(w, logit);
                let (below, equal, late) = (w.less(own, before_key), w.equal(own, before_key), w.less(before, token));
                let tie = w.and(equal, late);
                let is_behind = w.or(below, tie);
                let largest = w.get(key);
                let is_larger = w.less(largest, own);
                let is_better = w.and(is_behind, is_larger);
                w.when(is_better, |w| {
                    w.set(key, own);
                    w.set(best, token);
                });
            });
            let (key, best) = (w.get(key), w.get(best));
            let [key, best] = self.words.best(w, key, best);
            w.set(last_key, key);
            w.set(last, best);
            let (thread, at) = (w.thread(), w.add(first, rank));
            let is_first = w.equal(thread, zero);
            w.when(is_first, |w| {
                // No token is the highest number, which is -1.
                let logprob = self.logprob(w, given, row, best, end);
                self.outs[3].store(w, at, best);
                self.outs[4].store(w, at, logprob);
            });
        });
    }
}

/// How far a finite logit lies below the largest.
fn below(w: &mut KernelWriter, largest: Register, logit: Register) -> Double {
    let (sizes, sign) = (
        [largest, logit].map(|x| {
            let size = w.unary(UnaryFunction::Abs, x);
            double::of_f32(w, size)
        }),
        w.u32(31),
    );
    let signs = [largest, logit].map(|x| {
        let bits = w.bitcast(ScalarType::U32, x);
        w.shr(bits, sign)
    });
    let is_less = double::less(w, sizes[0], sizes[1]);
    let (large, small) = (wide::select(w, is_less, sizes[1], sizes[0]), wide::select(w, is_less, sizes[0], sizes[1]));
    let (sum, difference) = (double::add(w, large, small), double::sub(w, large, small));
    let is_same = w.equal(signs[0], signs[1]);
    wide::select(w, is_same, difference, sum)
}
