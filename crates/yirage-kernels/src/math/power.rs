//! Logarithm and powers. The polynomials are our own fits (relative error in parentheses).
//!
//! A power needs its logarithm to more bits than a float has. Where a product or a difference has to be exact, factors are
//! cut to 12 bits first: that is exact whether or not a device fuses a product with a sum, and no compiler sees through it.

use super::{exp_near, is_nan, polynomial, scale};
use yirage_kir::{KernelWriter, Register, ScalarType, UnaryFunction};

/// A positive number as `m 2^e`, m from sqrt(1/2) to sqrt(2).
struct Split {
    m: Register,
    e: Register,
}

impl Split {
    /// Of a positive finite number, by its bits. What is below the normal range is a whole number of the smallest ones, so
    /// that devices that flush such numbers see none.
    fn of(w: &mut KernelWriter, bits: Register) -> Split {
        let (least_normal, root_half, one_bits) = (w.u32(0x0080_0000), w.u32(0x3f35_04f3), w.u32(0x3f80_0000));
        let small = w.less(bits, least_normal);
        let whole = w.convert(ScalarType::F32, bits);
        let whole = w.bitcast(ScalarType::U32, whole);
        let bits = w.select(small, whole, bits);
        let (lifted, zero) = (w.f32(-149.0), w.f32(0.0));
        let lift = w.select(small, lifted, zero);
        let moved = w.sub(bits, root_half);
        let moved = w.add(moved, one_bits);
        let (twenty_three, bias, mask) = (w.u32(23), w.u32(127), w.u32(0x007f_ffff));
        let e = w.shr(moved, twenty_three);
        let e = w.sub(e, bias);
        let e = w.bitcast(ScalarType::I32, e);
        let e = w.convert(ScalarType::F32, e);
        let m = w.and(moved, mask);
        let m = w.add(m, root_half);
        Split { m: w.bitcast(ScalarType::F32, m), e: w.add(e, lift) }
    }
}

/// The natural logarithm, relative error below 3e-7; NaN below 0, minus infinity at 0.
pub(crate) fn log(w: &mut KernelWriter, x: Register) -> Register {
    let bits = w.bitcast(ScalarType::U32, x);
    let Split { m, e } = Split::of(w, bits);
    // log(1 + r) = r - (h - s (h + z P(z))) with s = r / (2 + r), z = s^2, h = r^2 / 2 (3e-9).
    let (one, two, half) = (w.f32(1.0), w.f32(2.0), w.f32(0.5));
    let r = w.sub(m, one);
    let below = w.add(r, two);
    let s = w.div(r, below);
    let z = w.mul(s, s);
    let p = polynomial(w, z, &[0.295_799_5, 0.399_887_8, 0.666_666_87]);
    let p = w.mul(p, z);
    let square = w.mul(r, r);
    let h = w.mul(square, half);
    let sum = w.add(h, p);
    let bend = w.mul(s, sum);
    // ln 2 in two parts: e times the first is exact.
    let (first, second) = (w.f32(0.693_359_4), w.f32(-2.121_944_4e-4));
    let (high, low) = (w.mul(e, first), w.mul(e, second));
    let low = w.add(low, bend);
    let low = w.sub(h, low);
    let rest = w.sub(r, low);
    let value = w.add(high, rest);
    of_odd_numbers(w, bits, value)
}

/// What a logarithm is of numbers, given by their bits, that are not positive and finite.
fn of_odd_numbers(w: &mut KernelWriter, bits: Register, value: Register) -> Register {
    let (size_mask, infinity_bits, zero_bits) = (w.u32(0x7fff_ffff), w.u32(0x7f80_0000), w.u32(0));
    let (infinity, least, nan) = (w.f32(f32::INFINITY), w.f32(f32::NEG_INFINITY), w.f32(f32::NAN));
    let size = w.and(bits, size_mask);
    let is_infinite = w.equal(bits, infinity_bits);
    let value = w.select(is_infinite, infinity, value);
    // What is negative, and each NaN, lies above infinity.
    let above = w.less(infinity_bits, bits);
    let value = w.select(above, nan, value);
    let is_zero = w.equal(size, zero_bits);
    w.select(is_zero, least, value)
}

/// A number as the sum of two, of which the first has 12 bits.
#[derive(Clone, Copy)]
struct Parts {
    high: Register,
    low: Register,
}

/// The upper 12 bits.
fn cut(w: &mut KernelWriter, x: Register) -> Register {
    let (bits, mask) = (w.bitcast(ScalarType::U32, x), w.u32(0xffff_f000));
    let bits = w.and(bits, mask);
    w.bitcast(ScalarType::F32, bits)
}

/// The binary logarithm of a positive finite number.
fn log2_parts(w: &mut KernelWriter, bits: Register) -> Parts {
    let Split { m, e } = Split::of(w, bits);
    let s = ratio(w, m);
    // log2 m = c s + s z P(z) with c = 2 / ln 2 (1e-10); c in two parts, too.
    const C: f32 = 2.884_765_6;
    let (c, c_low) = (w.f32(C), w.f32((std::f64::consts::LOG2_E * 2.0 - C as f64) as f32));
    let whole = w.add(s.high, s.low);
    let z = w.mul(whole, whole);
    let p = polynomial(w, z, &[0.336_587_5, 0.411_901_28, 0.577_079_8, 0.961_796_7]);
    let zs = w.mul(z, whole);
    let bend = w.mul(zs, p);
    let high = w.mul(c, s.high);
    let (a, b) = (w.mul(c, s.low), w.mul(c_low, whole));
    let low = w.add(a, b);
    let low = w.add(low, bend);
    // e is 0 or the larger one.
    let sum = w.add(e, high);
    let sum = w.add(sum, low);
    let first = cut(w, sum);
    let left = w.sub(e, first);
    let left = w.add(left, high);
    Parts { high: first, low: w.add(left, low) }
}

/// `(m - 1) / (m + 1)`: the second part is what the first leaves of the division.
fn ratio(w: &mut KernelWriter, m: Register) -> Parts {
    let one = w.f32(1.0);
    let (r, d) = (w.sub(m, one), w.add(m, one));
    let quotient = w.div(r, d);
    let (high, d_high) = (cut(w, quotient), cut(w, d));
    let d_low = w.sub(d_high, one);
    let d_low = w.sub(m, d_low);
    let (a, b) = (w.mul(high, d_high), w.mul(high, d_low));
    let rest = w.sub(r, a);
    let rest = w.sub(rest, b);
    Parts { high, low: w.div(rest, d) }
}

/// `x` to the power `y`, with the special cases of IEEE 754; relative error below 1e-6.
pub(crate) fn pow(w: &mut KernelWriter, x: Register, y: Register) -> Register {
    let (bits, size_mask) = (w.bitcast(ScalarType::U32, x), w.u32(0x7fff_ffff));
    let size = w.and(bits, size_mask);
    let exponent = exponent(w, size, y);
    let n = w.add(exponent.high, exponent.low);
    let n = w.unary(UnaryFunction::Round, n);
    let r = w.sub(exponent.high, n);
    let (r, ln2) = (w.add(r, exponent.low), w.f32(std::f32::consts::LN_2));
    let r = w.mul(r, ln2);
    let near = exp_near(w, r);
    let value = scale(w, near, n);
    let value = signed(w, bits, y, value);
    special(w, [x, y], size, value)
}

/// `y log2 |x|` from -200 to 200, beyond which a power is 0 or infinite.
fn exponent(w: &mut KernelWriter, size: Register, y: Register) -> Parts {
    let (log, y_high) = (log2_parts(w, size), cut(w, y));
    let y_low = w.sub(y, y_high);
    let (product, whole) = (w.mul(y_high, log.high), w.add(log.high, log.low));
    let (a, b) = (w.mul(y_high, log.low), w.mul(y_low, whole));
    let low = w.add(a, b);
    let whole = of_odd_numbers(w, size, whole);
    let rough = w.mul(y, whole);
    let (zero, most, least) = (w.f32(0.0), w.f32(200.0), w.f32(-200.0));
    let distance = w.unary(UnaryFunction::Abs, rough);
    let (inside, negative) = (w.less(distance, most), w.less(rough, zero));
    let end = w.select(negative, least, most);
    Parts { high: w.select(inside, product, end), low: w.select(inside, low, zero) }
}

/// Whether a number is whole, and whether it is odd.
fn whole_and_odd(w: &mut KernelWriter, y: Register) -> (Register, Register) {
    let half = w.f32(0.5);
    let half = w.mul(y, half);
    let (round, half_round) = (w.unary(UnaryFunction::Round, y), w.unary(UnaryFunction::Round, half));
    let (whole, uneven) = (w.equal(round, y), w.not_equal(half_round, half));
    (whole, w.and(whole, uneven))
}

/// Odd powers of a number below 0 are below 0.
fn signed(w: &mut KernelWriter, x_bits: Register, y: Register, value: Register) -> Register {
    let (_, odd) = whole_and_odd(w, y);
    let (sign, none) = (w.u32(1 << 31), w.u32(0));
    let sign = w.and(x_bits, sign);
    let sign = w.select(odd, sign, none);
    let value = w.bitcast(ScalarType::U32, value);
    let value = w.or(value, sign);
    w.bitcast(ScalarType::F32, value)
}

/// What has no limit: roots of numbers below 0 and all of NaN are NaN; any power of 1, the zeroth of anything and infinite
/// ones of -1 are 1.
fn special(w: &mut KernelWriter, [x, y]: [Register; 2], size: Register, value: Register) -> Register {
    let (zero, one, nan, infinity_bits) = (w.f32(0.0), w.f32(1.0), w.f32(f32::NAN), w.u32(0x7f80_0000));
    let (finite, negative) = (w.less(size, infinity_bits), w.less(x, zero));
    let (whole, _) = whole_and_odd(w, y);
    let broken = w.unary(UnaryFunction::Not, whole);
    let root = w.and(negative, finite);
    let root = w.and(root, broken);
    let (x_nan, y_nan) = (is_nan(w, x), is_nan(w, y));
    let undefined = w.or(x_nan, y_nan);
    let undefined = w.or(undefined, root);
    let value = w.select(undefined, nan, value);
    let (is_one, is_zeroth) = (w.equal(x, one), w.equal(y, zero));
    let (one_bits, size_mask, y_bits) = (w.u32(0x3f80_0000), w.u32(0x7fff_ffff), w.bitcast(ScalarType::U32, y));
    let y_size = w.and(y_bits, size_mask);
    let (unit_size, endless) = (w.equal(size, one_bits), w.equal(y_size, infinity_bits));
    let unit = w.or(is_one, is_zeroth);
    let endless_unit = w.and(unit_size, endless);
    let unit = w.or(unit, endless_unit);
    w.select(unit, one, value)
}
