//! A row that is looked at by a group of threads: what they find together, the best of it and sums.

use crate::wide;
use yirage_kir::{KernelMemory, KernelWriter, Register, ScalarType};

/// Threads of a group.
pub(super) const THREADS: u32 = 256;

/// Threads that each join as many results as there are such threads.
const JOINERS: u32 = 16;

/// Elements that a thread looks at in one round of its loop.
const UNROLLED: u32 = 4;

/// Two words a thread, as the group joins them.
pub(super) struct GroupWords {
    all: [KernelMemory; 2],
    few: [KernelMemory; 2],
}

impl GroupWords {
    pub(super) fn new(w: &mut KernelWriter) -> GroupWords {
        let mut shared = |len: u32| [(); 2].map(|()| w.shared(ScalarType::U32, len));
        GroupWords { all: shared(THREADS), few: shared(JOINERS) }
    }

    /// The threads' words joined, in every thread. All threads come here.
    pub(super) fn join(
        &self,
        w: &mut KernelWriter,
        own: [Register; 2],
        join: impl Fn(&mut KernelWriter, [Register; 2], [Register; 2]) -> [Register; 2],
    ) -> [Register; 2] {
        let (thread, joiners, zero) = (w.thread(), w.u32(JOINERS), w.u32(0));
        (0..2).for_each(|word| w.store(self.all[word], thread, own[word]));
        w.barrier();
        let joins = w.less(thread, joiners);
        w.when(joins, |w| {
            let each = w.u32(THREADS / JOINERS);
            let first = w.mul(thread, each);
            let joined = joined(w, self.all, first, THREADS / JOINERS, &join);
            (0..2).for_each(|word| w.store(self.few[word], thread, joined[word]));
        });
        w.barrier();
        joined(w, self.few, zero, JOINERS, &join)
    }

    /// The largest key and, of those that have it, the smallest number.
    pub(super) fn best(&self, w: &mut KernelWriter, key: Register, number: Register) -> [Register; 2] {
        self.join(w, [key, number], |w, a, b| {
            let (above, equal, below) = (w.less(b[0], a[0]), w.equal(a[0], b[0]), w.less(a[1], b[1]));
            let first = w.and(equal, below);
            let first = w.or(above, first);
            [w.select(first, a[0], b[0]), w.select(first, a[1], b[1])]
        })
    }

    /// The smallest number.
    pub(super) fn least(&self, w: &mut KernelWriter, number: Register) -> Register {
        self.join(w, [number, number], |w, a, b| [w.min(a[0], b[0]), a[1]])[0]
    }

    /// The sum of numbers of 64 bits, the lower word first.
    pub(super) fn sum(&self, w: &mut KernelWriter, own: [Register; 2]) -> [Register; 2] {
        self.join(w, own, wide::add)
    }
}

fn joined(
    w: &mut KernelWriter,
    from: [KernelMemory; 2],
    first: Register,
    count: u32,
    join: &impl Fn(&mut KernelWriter, [Register; 2], [Register; 2]) -> [Register; 2],
) -> [Register; 2] {
    let own = from.map(|memory| w.load(memory, first)).map(|word| w.variable(word));
    let (one, count) = (w.u32(1), w.u32(count));
    let (second, end) = (w.add(first, one), w.add(first, count));
    w.for_each(second, end, one, |w, at| {
        let (so_far, other) = (own.map(|word| w.get(word)), from.map(|memory| w.load(memory, at)));
        let both = join(w, so_far, other);
        (0..2).for_each(|word| w.set(own[word], both[word]));
    });
    own.map(|word| w.get(word))
}

/// Each thread's elements of `0..end`, in ascending order: every 256th.
pub(super) fn for_each_element(w: &mut KernelWriter, end: Register, body: impl Fn(&mut KernelWriter, Register)) {
    let (thread, step) = (w.thread(), w.u32(THREADS * UNROLLED));
    w.for_each(thread, end, step, |w, first| {
        body(w, first);
        for at in 1..UNROLLED {
            let behind = w.u32(THREADS * at);
            let element = w.add(first, behind);
            let is_element = w.less(element, end);
            w.when(is_element, |w| body(w, element));
        }
    });
}

/// A float as a number in the order of floats: -0 equals 0, no NaN.
pub(super) fn order_key(w: &mut KernelWriter, x: Register) -> Register {
    let (zero, sign) = (w.f32(0.0), w.u32(0x8000_0000));
    let is_zero = w.equal(x, zero);
    let x = w.select(is_zero, zero, x);
    let bits = w.bitcast(ScalarType::U32, x);
    let is_negative = w.less_equal(sign, bits);
    let (turned, raised) = (w.unary(yirage_kir::UnaryFunction::Not, bits), w.or(bits, sign));
    w.select(is_negative, turned, raised)
}

/// The key of -infinity.
pub(super) const LEAST_KEY: u32 = !0xff80_0000;
