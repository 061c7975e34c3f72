//! Masks, biases and penalties: a copy of a row in the workspace, of which each token is one thread's.

use super::SampleKernel;
use crate::elements::Elements;
use crate::exact_division::divide;
use crate::op::row_group::{THREADS, for_each_element};
use yirage_ir::op::sample::SampleInput;
use yirage_kir::{KernelWriter, Register, ScalarType};

/// A row of logits.
#[derive(Clone, Copy)]
pub(super) struct LogitRow {
    pub(super) elements: Elements,
    pub(super) first: Register,
}

impl LogitRow {
    pub(super) fn load(&self, w: &mut KernelWriter, token: Register) -> Register {
        let at = w.add(self.first, token);
        self.elements.load(w, at)
    }
}

impl SampleKernel<'_> {
    /// Writes the first `end` logits of sequence `s`, changed, to `to`.
    pub(super) fn adjust(&self, w: &mut KernelWriter, s: Register, from: &LogitRow, to: &LogitRow, end: Register) {
        for_each_element(w, end, |w, token| {
            let logit = from.load(w, token);
            let logit = if self.op.mask { self.masked(w, s, token, logit) } else { logit };
            to.store(w, token, logit);
        });
        if self.op.bias {
            self.entries(w, s, SampleInput::BiasAt, 2, end, |w, token, entry| {
                let (logit, bias) = (to.load(w, token), self.input(SampleInput::Bias).load(w, entry));
                let logit = w.add(logit, bias);
                to.store(w, token, logit);
            });
        }
        if self.op.penalties {
            self.entries(w, s, SampleInput::History, 3, end, |w, token, entry| self.penalise(w, s, to, token, entry));
        }
    }

    fn masked(&self, w: &mut KernelWriter, s: Register, token: Register, logit: Register) -> Register {
        let (bits, words, one, zero) = (w.u32(32), w.u32(self.vocabulary.div_ceil(32)), w.u32(1), w.u32(0));
        let row = w.mul(s, words);
        let (word, bit) = (w.div(token, bits), w.rem(token, bits));
        let at = w.add(row, word);
        let word = self.input(SampleInput::Allowed).load(w, at);
        let bit = w.shr(word, bit);
        let bit = w.and(bit, one);
        let (is_masked, nothing) = (w.equal(bit, zero), w.f32(f32::NEG_INFINITY));
        w.select(is_masked, nothing, logit)
    }

    fn penalise(&self, w: &mut KernelWriter, s: Register, row: &LogitRow, token: Register, entry: Register) {
        let of = |w: &mut KernelWriter, slot| self.input(slot).load(w, s);
        let repetition = of(w, SampleInput::Repetition);
        let frequency = of(w, SampleInput::Frequency);
        let presence = of(w, SampleInput::Presence);
        let (logit, zero) = (row.load(w, token), w.f32(0.0));
        let (is_positive, divided, product) =
            (w.less(zero, logit), divide(w, logit, repetition), w.mul(logit, repetition));
        let logit = w.select(is_positive, divided, product);
        let (three, two) = (w.u32(3), w.u32(2));
        let first = w.mul(entry, three);
        let at = w.add(first, two);
        let uses = self.input(SampleInput::History).load(w, at);
        let none = w.i32(0);
        let is_used = w.less(none, uses);
        let count = w.convert(ScalarType::F32, uses);
        let often = w.mul(frequency, count);
        let less = w.sub(logit, often);
        let less = w.sub(less, presence);
        let logit = w.select(is_used, less, logit);
        row.store(w, token, logit);
    }

    /// Those entries of a sequence, in their order, whose tokens are this thread's.
    fn entries(
        &self,
        w: &mut KernelWriter,
        s: Register,
        slot: SampleInput,
        words: u32,
        end: Register,
        body: impl FnOnce(&mut KernelWriter, Register, Register),
    ) {
        let (first, behind) = self.entry_range(w, s, slot, words);
        let (one, zero) = (w.u32(1), w.u32(0));
        // Nothing is changed where there is no row.
        let has_row = w.less(zero, end);
        let behind = w.select(has_row, behind, first);
        w.for_each(first, behind, one, |w, entry| {
            let token = self.entry_word(w, slot, words, entry, 1);
            let token = w.bitcast(ScalarType::U32, token);
            let (thread, threads) = (w.thread(), w.u32(THREADS));
            let owner = w.rem(token, threads);
            let (is_mine, is_token) = (w.equal(owner, thread), w.less(token, end));
            let is_mine = w.and(is_mine, is_token);
            w.when(is_mine, |w| body(w, token, entry));
        });
    }

    fn entry_word(&self, w: &mut KernelWriter, slot: SampleInput, words: u32, entry: Register, word: u32) -> Register {
        let (words, word) = (w.u32(words), w.u32(word));
        let first = w.mul(entry, words);
        let at = w.add(first, word);
        self.input(slot).load(w, at)
    }

    /// The entries of a sequence: they come in the order of their sequences.
    fn entry_range(&self, w: &mut KernelWriter, s: Register, slot: SampleInput, words: u32) -> (Register, Register) {
        let entries = self.entry_counts[if slot == SampleInput::History { 1 } else { 0 }];
        let one = w.u32(1);
        let next = w.add(s, one);
        [s, next].map(|below| self.entries_below(w, slot, words, entries, below)).into()
    }

    /// How many entries are of sequences before this one.
    fn entries_below(
        &self,
        w: &mut KernelWriter,
        slot: SampleInput,
        words: u32,
        entries: Register,
        sequence: Register,
    ) -> Register {
        let (zero, one, two, rounds) = (w.u32(0), w.u32(1), w.u32(2), w.u32(32));
        let (low, high) = (w.variable(zero), w.variable(entries));
        w.for_each(zero, rounds, one, |w, _| {
            let (first, end) = (w.get(low), w.get(high));
            let is_open = w.less(first, end);
            w.when(is_open, |w| {
                let length = w.sub(end, first);
                let half = w.div(length, two);
                let middle = w.add(first, half);
                let of = self.entry_word(w, slot, words, middle, 0);
                let of = w.bitcast(ScalarType::U32, of);
                let is_below = w.less(of, sequence);
                w.either(
                    is_below,
                    |w| {
                        let behind = w.add(middle, one);
                        w.set(low, behind);
                    },
                    |w| w.set(high, middle),
                );
            });
        });
        w.get(low)
    }
}

impl LogitRow {
    fn store(&self, w: &mut KernelWriter, token: Register, logit: Register) {
        let at = w.add(self.first, token);
        self.elements.store(w, at, logit);
    }
}
