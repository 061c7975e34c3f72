//! The best elements of a row without sorting: the shortest beginning, in order of keys, that measures enough, found bit by bit.

use super::row_group::{GroupWords, THREADS, for_each_element};
use crate::wide::{self, Wide};
use yirage_kir::{KernelMemory, KernelWriter, Register};

/// A row whose elements have keys, which is looked at by a group of threads.
pub(super) struct KeyedRow<'a, K: Fn(&mut KernelWriter, Register) -> Register> {
    pub(super) words: &'a GroupWords,
    /// Elements of a row.
    pub(super) width: u32,
    /// Those that are looked at: all, or none.
    pub(super) end: Register,
    /// The key of an element.
    pub(super) key: K,
}

/// Elements with a larger key than this, or with this key and no larger index than this.
#[derive(Clone, Copy)]
pub(super) struct RowPrefix {
    pub(super) key: Register,
    pub(super) index: Register,
}

impl RowPrefix {
    pub(super) fn has(&self, w: &mut KernelWriter, key: Register, index: Register) -> Register {
        let (above, equal, early) = (w.less(self.key, key), w.equal(key, self.key), w.less_equal(index, self.index));
        let tie = w.and(equal, early);
        w.or(above, tie)
    }
}

impl<K: Fn(&mut KernelWriter, Register) -> Register> KeyedRow<'_, K> {
    /// The shortest beginning of a row whose elements measure `target` together, which is above 0; the whole row where all of
    /// it measures less. What measures something has a key above 0. All threads come here.
    pub(super) fn shortest_prefix(
        &self,
        w: &mut KernelWriter,
        target: Wide,
        measure: impl Fn(&mut KernelWriter, Register, Register) -> Wide,
    ) -> RowPrefix {
        let (zero, one, bits, top) = (w.u32(0), w.u32(1), w.u32(32), w.u32(31));
        let key = w.variable(zero);
        w.for_each(zero, bits, one, |w, round| {
            let place = w.sub(top, round);
            let (so_far, bit) = (w.get(key), w.shl(one, place));
            let tried = w.or(so_far, bit);
            let measured = self.measured(w, &measure, |w, key, _| w.less_equal(tried, key));
            let is_short = wide::less(w, measured, target);
            let next = w.select(is_short, so_far, tried);
            w.set(key, next);
        });
        let key = w.get(key);
        let index = w.variable(zero);
        let index_bits = 32 - (self.width - 1).leading_zeros();
        let (rounds, top) = (w.u32(index_bits), w.u32(index_bits.max(1) - 1));
        w.for_each(zero, rounds, one, |w, round| {
            let place = w.sub(top, round);
            let (so_far, bit) = (w.get(index), w.shl(one, place));
            let tried = w.or(so_far, bit);
            let measured = self.measured(w, &measure, |w, other, index| {
                let (above, equal, early) = (w.less(key, other), w.equal(key, other), w.less(index, tried));
                let tie = w.and(equal, early);
                w.or(above, tie)
            });
            let is_short = wide::less(w, measured, target);
            let next = w.select(is_short, tried, so_far);
            w.set(index, next);
        });
        RowPrefix { key, index: w.get(index) }
    }

    /// What those elements of a row measure that are chosen by key and index, in every thread. All threads come here.
    pub(super) fn measured(
        &self,
        w: &mut KernelWriter,
        measure: &impl Fn(&mut KernelWriter, Register, Register) -> Wide,
        chosen: impl Fn(&mut KernelWriter, Register, Register) -> Register,
    ) -> Wide {
        let nothing = wide::wide(w, 0);
        let sum = nothing.map(|word| w.variable(word));
        for_each_element(w, self.end, |w, index| {
            let key = (self.key)(w, index);
            let is_chosen = chosen(w, key, index);
            w.when(is_chosen, |w| {
                let (own, so_far) = (measure(w, key, index), sum.map(|word| w.get(word)));
                let next = wide::add(w, so_far, own);
                (0..2).for_each(|word| w.set(sum[word], next[word]));
            });
        });
        let sum = sum.map(|word| w.get(word));
        self.words.sum(w, sum)
    }

    /// Writes the elements that are kept, in ascending order of their indices, by `write`, which gets the place, the index and
    /// the key of each. How many they are, in every thread. All threads come here, and what is written is seen by all.
    pub(super) fn compact(
        &self,
        w: &mut KernelWriter,
        counts: KernelMemory,
        is_kept: impl Fn(&mut KernelWriter, Register, Register) -> Register,
        write: impl Fn(&mut KernelWriter, Register, Register, Register),
    ) -> Register {
        let (thread, zero, one, threads) = (w.thread(), w.u32(0), w.u32(1), w.u32(THREADS));
        let each = w.u32(self.width.div_ceil(THREADS));
        let from = w.mul(thread, each);
        let to = w.add(from, each);
        let to = w.min(to, self.end);
        let count = w.variable(zero);
        let each_kept = |w: &mut KernelWriter, body: &dyn Fn(&mut KernelWriter, Register, Register)| {
            w.for_each(from, to, one, |w, index| {
                let key = (self.key)(w, index);
                let is_kept = is_kept(w, key, index);
                w.when(is_kept, |w| body(w, index, key));
            });
        };
        // What an element is judged by may be another thread's.
        w.barrier();
        each_kept(w, &|w, _, _| {
            let so_far = w.get(count);
            let next = w.add(so_far, one);
            w.set(count, next);
        });
        let own = w.get(count);
        w.store(counts, thread, own);
        w.barrier();
        let (place, all) = (w.variable(zero), w.variable(zero));
        w.for_each(zero, threads, one, |w, other| {
            let (kept, so_far) = (w.load(counts, other), w.get(all));
            let next = w.add(so_far, kept);
            w.set(all, next);
            let is_before = w.less(other, thread);
            w.when(is_before, |w| {
                let so_far = w.get(place);
                let next = w.add(so_far, kept);
                w.set(place, next);
            });
        });
        each_kept(w, &|w, index, key| {
            let at = w.get(place);
            write(w, at, index, key);
            let next = w.add(at, one);
            w.set(place, next);
        });
        w.barrier();
        w.get(all)
    }
}
