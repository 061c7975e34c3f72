//! Whole numbers of 64 bits as two words, the lower first.

use yirage_kir::{KernelWriter, Register, ScalarType};

/// A number of 64 bits: the lower word and the higher.
pub(crate) type Wide = [Register; 2];

pub(crate) fn wide(w: &mut KernelWriter, value: u64) -> Wide {
    [w.u32(value as u32), w.u32((value >> 32) as u32)]
}

pub(crate) fn add(w: &mut KernelWriter, a: Wide, b: Wide) -> Wide {
    let low = w.add(a[0], b[0]);
    let carries = w.less(low, a[0]);
    let carry = w.convert(ScalarType::U32, carries);
    let high = w.add(a[1], b[1]);
    [low, w.add(high, carry)]
}

pub(crate) fn sub(w: &mut KernelWriter, a: Wide, b: Wide) -> Wide {
    let borrows = w.less(a[0], b[0]);
    let borrow = w.convert(ScalarType::U32, borrows);
    let (low, high) = (w.sub(a[0], b[0]), w.sub(a[1], b[1]));
    [low, w.sub(high, borrow)]
}

pub(crate) fn less(w: &mut KernelWriter, a: Wide, b: Wide) -> Register {
    let (below, equal, low) = (w.less(a[1], b[1]), w.equal(a[1], b[1]), w.less(a[0], b[0]));
    let low = w.and(equal, low);
    w.or(below, low)
}

pub(crate) fn is_zero(w: &mut KernelWriter, a: Wide) -> Register {
    let (both, zero) = (w.or(a[0], a[1]), w.u32(0));
    w.equal(both, zero)
}

pub(crate) fn select(w: &mut KernelWriter, condition: Register, a: Wide, b: Wide) -> Wide {
    [w.select(condition, a[0], b[0]), w.select(condition, a[1], b[1])]
}

/// `x << (32 - by)`, `by` from 0 to 31.
fn shifted_out(w: &mut KernelWriter, x: Register, by: Register) -> Register {
    let (one, most) = (w.u32(1), w.u32(31));
    let (rest, first) = (w.sub(most, by), w.shl(x, one));
    w.shl(first, rest)
}

/// `a >> by`, `by` from 0 to 63, and what is 0 where no bit that was 1 is lost.
pub(crate) fn shr(w: &mut KernelWriter, a: Wide, by: Register) -> (Wide, Register) {
    let (word, mask, zero) = (w.u32(32), w.u32(31), w.u32(0));
    let (is_less, within) = (w.less(by, word), w.and(by, mask));
    let (low, from_high) = (w.shr(a[0], within), shifted_out(w, a[1], within));
    let low = w.or(low, from_high);
    let high = w.shr(a[1], within);
    let (lost, lost_of_high) = (shifted_out(w, a[0], within), w.or(a[0], from_high));
    let moved = [w.select(is_less, low, high), w.select(is_less, high, zero)];
    (moved, w.select(is_less, lost, lost_of_high))
}

/// `a << by`, `by` from 0 to 31.
pub(crate) fn shl(w: &mut KernelWriter, a: Wide, by: Register) -> Wide {
    let (one, most) = (w.u32(1), w.u32(31));
    let (rest, half) = (w.sub(most, by), w.shr(a[0], one));
    let carried = w.shr(half, rest);
    let high = w.shl(a[1], by);
    [w.shl(a[0], by), w.or(high, carried)]
}

/// A number above 0 moved up until its highest bit is 1, and by how much.
pub(crate) fn normalized(w: &mut KernelWriter, a: Wide) -> (Wide, Register) {
    let zero = w.u32(0);
    let no_high = w.equal(a[1], zero);
    let mut moved = [w.select(no_high, zero, a[0]), w.select(no_high, a[0], a[1])];
    let word = w.u32(32);
    let mut by = w.select(no_high, word, zero);
    for step in [16, 8, 4, 2, 1] {
        let (rest, step) = (w.u32(32 - step), w.u32(step));
        let top = w.shr(moved[1], rest);
        let is_empty = w.equal(top, zero);
        let own = w.select(is_empty, step, zero);
        moved = shl(w, moved, own);
        by = w.add(by, own);
    }
    (moved, by)
}

/// The product of two words.
pub(crate) fn product(w: &mut KernelWriter, a: Register, b: Register) -> Wide {
    let (sixteen, mask) = (w.u32(16), w.u32(0xffff));
    let (a_low, a_high, b_low, b_high) = (w.and(a, mask), w.shr(a, sixteen), w.and(b, mask), w.shr(b, sixteen));
    let (low, high) = (w.mul(a_low, b_low), w.mul(a_high, b_high));
    let crossed = [w.mul(a_low, b_high), w.mul(a_high, b_low)];
    let carried = w.shr(low, sixteen);
    let (mut middle, mut high) = (carried, high);
    for part in crossed {
        let (below, above) = (w.and(part, mask), w.shr(part, sixteen));
        middle = w.add(middle, below);
        high = w.add(high, above);
    }
    let above = w.shr(middle, sixteen);
    // The lower word of a product is what a multiplication gives.
    [w.mul(a, b), w.add(high, above)]
}

/// The product of two numbers of 64 bits: the lower 64 bits and the higher.
pub(crate) fn full_product(w: &mut KernelWriter, a: Wide, b: Wide) -> [Wide; 2] {
    let (low, high) = (product(w, a[0], b[0]), product(w, a[1], b[1]));
    let mut words = [low, high];
    for crossed in [product(w, a[0], b[1]), product(w, a[1], b[0])] {
        // Added one word up.
        let middle = add(w, [words[0][1], words[1][0]], crossed);
        let carries = less(w, middle, crossed);
        let carry = w.convert(ScalarType::U32, carries);
        let top = w.add(words[1][1], carry);
        words = [[words[0][0], middle[0]], [middle[1], top]];
    }
    words
}
