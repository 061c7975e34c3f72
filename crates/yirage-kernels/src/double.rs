//! Floats of 64 bits (IEEE 754) that are not negative, as two words: zero, or normal numbers far from the largest and the
//! smallest. Additions, differences and products are rounded to nearest, ties to even, as processors round them.

use crate::wide::{self, Wide};
use yirage_kir::{KernelWriter, Register, ScalarType};

/// The bits of one.
pub(crate) type Double = Wide;

/// What 1's exponent is written as.
const BIAS: u32 = 1023;

pub(crate) fn zero(w: &mut KernelWriter) -> Double {
    wide::wide(w, 0)
}

fn exponent(w: &mut KernelWriter, x: Double) -> Register {
    let place = w.u32(20);
    w.shr(x[1], place)
}

/// The 53 bits of a number, moved up by so many; of zero 0.
fn mantissa(w: &mut KernelWriter, x: Double, by: u32) -> Wide {
    let (fraction, leading, none) = (w.u32(0x000f_ffff), w.u32(0x0010_0000), w.u32(0));
    let high = w.and(x[1], fraction);
    let high = w.or(high, leading);
    let is_zero = w.equal(x[1], none);
    let high = w.select(is_zero, none, high);
    let by = w.u32(by);
    wide::shl(w, [x[0], high], by)
}

/// A number from 64 bits of which the highest is 1, the exponent of that bit, and what is 0 where nothing follows them.
fn rounded(w: &mut KernelWriter, bits: Wide, exponent: Register, rest: Register) -> Double {
    let (eleven, one, zero) = (w.u32(11), w.u32(1), w.u32(0));
    let (kept, _) = wide::shr(w, bits, eleven);
    let (half, below) = (w.u32(0x400), w.u32(0x3ff));
    let (half, below) = (w.and(bits[0], half), w.and(bits[0], below));
    let behind = w.or(below, rest);
    let (is_half, is_more) = (w.not_equal(half, zero), w.not_equal(behind, zero));
    let odd = w.and(kept[0], one);
    let is_odd = w.not_equal(odd, zero);
    let up = w.or(is_more, is_odd);
    let up = w.and(is_half, up);
    let up = w.convert(ScalarType::U32, up);
    // The leading bit adds one to the exponent's place, and so does a mantissa that is rounded up to the next power of two.
    let place = w.u32(20);
    let below = w.sub(exponent, one);
    let high = w.shl(below, place);
    let high = w.add(high, kept[1]);
    wide::add(w, [kept[0], high], [up, zero])
}

/// An f32 that is zero or a normal number above it.
pub(crate) fn of_f32(w: &mut KernelWriter, x: Register) -> Double {
    let bits = w.bitcast(ScalarType::U32, x);
    let (place, moved, three, up) = (w.u32(23), w.u32((BIAS - 127) << 20), w.u32(3), w.u32(29));
    let exponent = w.shr(bits, place);
    let high = w.shr(bits, three);
    let high = w.add(high, moved);
    let none = w.u32(0);
    let is_zero = w.equal(exponent, none);
    let low = w.shl(bits, up);
    [w.select(is_zero, none, low), w.select(is_zero, none, high)]
}

/// The nearest f32, ties to even, of a number that has a normal one.
pub(crate) fn to_f32(w: &mut KernelWriter, x: Double) -> Register {
    let bits = mantissa(w, x, 11);
    let (eight, one, none, half, below) = (w.u32(8), w.u32(1), w.u32(0), w.u32(0x80), w.u32(0x7f));
    let kept = w.shr(bits[1], eight);
    let (half, below) = (w.and(bits[1], half), w.and(bits[1], below));
    let behind = w.or(below, bits[0]);
    let (is_half, is_more, odd) = (w.not_equal(half, none), w.not_equal(behind, none), w.and(kept, one));
    let is_odd = w.not_equal(odd, none);
    let up = w.or(is_more, is_odd);
    let up = w.and(is_half, up);
    let up = w.convert(ScalarType::U32, up);
    let (exponent, moved, place) = (exponent(w, x), w.u32(BIAS - 127 + 1), w.u32(23));
    let exponent = w.sub(exponent, moved);
    let high = w.shl(exponent, place);
    let sum = w.add(high, kept);
    let sum = w.add(sum, up);
    let is_zero = wide::is_zero(w, x);
    let bits = w.select(is_zero, none, sum);
    w.bitcast(ScalarType::F32, bits)
}

/// A whole number, rounded.
pub(crate) fn of_wide(w: &mut KernelWriter, x: Wide) -> Double {
    let (bits, by) = wide::normalized(w, x);
    let (most, none) = (w.u32(BIAS + 63), w.u32(0));
    let exponent = w.sub(most, by);
    let made = rounded(w, bits, exponent, none);
    let (is_zero, zero) = (wide::is_zero(w, x), zero(w));
    wide::select(w, is_zero, zero, made)
}

/// The least whole number that is not below.
pub(crate) fn ceil(w: &mut KernelWriter, x: Double) -> Wide {
    let (exponent, bits) = (exponent(w, x), mantissa(w, x, 0));
    let (whole, none, one, most) = (w.u32(BIAS + 52), w.u32(0), w.u32(1), w.u32(63));
    let is_large = w.less(whole, exponent);
    let (above, below) = (w.sub(exponent, whole), w.sub(whole, exponent));
    let (above, below) = (w.select(is_large, above, none), w.select(is_large, none, below));
    let below = w.min(below, most);
    let large = wide::shl(w, bits, above);
    let (small, lost) = wide::shr(w, large, below);
    let is_part = w.not_equal(lost, none);
    let up = w.select(is_part, one, none);
    wide::add(w, small, [up, none])
}

/// Times 2 to a power, which is added to the exponent.
pub(crate) fn scaled(w: &mut KernelWriter, x: Double, power: Register) -> Double {
    let (place, none) = (w.u32(20), w.u32(0));
    let power = w.shl(power, place);
    let high = w.add(x[1], power);
    let is_zero = wide::is_zero(w, x);
    [x[0], w.select(is_zero, none, high)]
}

pub(crate) fn less(w: &mut KernelWriter, a: Double, b: Double) -> Register {
    wide::less(w, a, b)
}

/// The larger and the smaller: the 63 bits of each that count, with the larger's exponent, and what the smaller has behind.
fn aligned(w: &mut KernelWriter, large: Double, small: Double) -> (Wide, Wide, Register) {
    let (exponents, most) = ([exponent(w, large), exponent(w, small)], w.u32(63));
    let (a, b) = (mantissa(w, large, 10), mantissa(w, small, 10));
    let apart = w.sub(exponents[0], exponents[1]);
    let apart = w.min(apart, most);
    let (b, lost) = wide::shr(w, b, apart);
    let none = w.u32(0);
    let is_lost = w.not_equal(lost, none);
    let sticky = w.convert(ScalarType::U32, is_lost);
    let low = w.or(b[0], sticky);
    (a, [low, b[1]], exponents[0])
}

/// `a + b`.
pub(crate) fn add(w: &mut KernelWriter, a: Double, b: Double) -> Double {
    let is_less = wide::less(w, a, b);
    let (large, small) = (wide::select(w, is_less, b, a), wide::select(w, is_less, a, b));
    let (a, b, exponent) = aligned(w, large, small);
    let sum = wide::add(w, a, b);
    let (top, none, one) = (w.u32(31), w.u32(0), w.u32(1));
    // The highest bit that counts is the second, or after a carry the first.
    let carry = w.shr(sum[1], top);
    let by = w.sub(one, carry);
    let bits = wide::shl(w, sum, by);
    let exponent = w.add(exponent, carry);
    let made = rounded(w, bits, exponent, none);
    let (is_zero, zero) = (wide::is_zero(w, large), zero(w));
    wide::select(w, is_zero, zero, made)
}

/// `a - b`, `b` not above `a`.
pub(crate) fn sub(w: &mut KernelWriter, a: Double, b: Double) -> Double {
    let (a, b, exponent) = aligned(w, a, b);
    let difference = wide::sub(w, a, b);
    let (bits, by) = wide::normalized(w, difference);
    let (one, none) = (w.u32(1), w.u32(0));
    let exponent = w.add(exponent, one);
    let exponent = w.sub(exponent, by);
    let made = rounded(w, bits, exponent, none);
    let (is_zero, zero) = (wide::is_zero(w, difference), zero(w));
    wide::select(w, is_zero, zero, made)
}

/// `a b`.
pub(crate) fn mul(w: &mut KernelWriter, a: Double, b: Double) -> Double {
    let exponents = [exponent(w, a), exponent(w, b)];
    let (bits_a, bits_b) = (mantissa(w, a, 11), mantissa(w, b, 11));
    let [low, high] = wide::full_product(w, bits_a, bits_b);
    let (top, one, bias) = (w.u32(31), w.u32(1), w.u32(BIAS));
    let carry = w.shr(high[1], top);
    let by = w.sub(one, carry);
    let moved = wide::shl(w, high, by);
    let next = w.shr(low[1], top);
    let next = w.and(next, by);
    let moved = [w.or(moved[0], next), moved[1]];
    let low_high = w.shl(low[1], by);
    let rest = w.or(low_high, low[0]);
    let exponent = w.add(exponents[0], exponents[1]);
    let exponent = w.sub(exponent, bias);
    let exponent = w.add(exponent, carry);
    let made = rounded(w, moved, exponent, rest);
    let (a_is_zero, b_is_zero) = (wide::is_zero(w, a), wide::is_zero(w, b));
    let is_zero = w.or(a_is_zero, b_is_zero);
    let zero = zero(w);
    wide::select(w, is_zero, zero, made)
}
