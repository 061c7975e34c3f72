//! Logarithm and powers on lanes, made of the same operations at every level. The polynomials are our own fits
//! (relative error in parentheses).

use super::Lanes;
use super::math::{exp_near, polynomial};

/// `x` as `m 2^e` with m from sqrt(1/2) to sqrt(2); of a positive number.
#[inline(always)]
fn split<V: Lanes>(x: V) -> (V, V) {
    const ROOT_HALF: u32 = 0x3f35_04f3;
    // What is below the normal range is lifted into it.
    let small = x.less(V::word(0x0080_0000));
    let x = small.choose(x.mul(V::splat(16_777_216.0)), x);
    let lift = small.choose(V::splat(-24.0), V::splat(0.0));
    let bits = x.wrapping_sub(V::word(ROOT_HALF)).wrapping_add(V::word(0x3f80_0000));
    let e = bits.shr::<23>().wrapping_sub(V::word(127)).floats().add(lift);
    let m = bits.and(V::word(0x007f_ffff)).wrapping_add(V::word(ROOT_HALF));
    (m, e)
}

/// The natural logarithm, relative error below 3e-7; NaN below 0, minus infinity at 0.
#[inline(always)]
pub fn log<V: Lanes>(x: V) -> V {
    let (m, e) = split(x);
    // log(1 + r) = r - (h - s (h + z P(z))) with s = r / (2 + r), z = s^2, h = r^2 / 2 (3e-9).
    let r = m.sub(V::splat(1.0));
    let s = r.div(r.add(V::splat(2.0)));
    let z = s.mul(s);
    let p = polynomial(z, [0.295_799_5, 0.399_887_8, 0.666_666_87]).mul(z);
    let h = r.mul(r).mul(V::splat(0.5));
    let low = e.fma(V::splat(-2.121_944_4e-4), s.mul(h.add(p)));
    let value = e.fma(V::splat(0.693_359_4), r.sub(h.sub(low)));
    of_odd_numbers(x, value)
}

/// What a logarithm is of numbers that are not positive and finite.
#[inline(always)]
fn of_odd_numbers<V: Lanes>(x: V, value: V) -> V {
    let (zero, infinity) = (V::splat(0.0), V::splat(f32::INFINITY));
    let value = x.equal(infinity).choose(infinity, value);
    let value = x.equal(zero).choose(V::splat(f32::NEG_INFINITY), value);
    zero.less_equal(x).choose(value, V::splat(f32::NAN))
}

/// The binary logarithm of a number that is not negative, in two parts of which the second is small.
#[inline(always)]
fn log2_parts<V: Lanes>(x: V) -> (V, V) {
    let (m, e) = split(x);
    let one = V::splat(1.0);
    // s = (m - 1) / (m + 1) in two parts: the remainder of the division is exact.
    let (r, d) = (m.sub(one), m.add(one));
    let rest = m.sub(d.sub(one));
    let s = r.div(d);
    let minus = V::splat(0.0).sub(s);
    let s_low = minus.fma(rest, minus.fma(d, r)).div(d);
    // log2 m = c s + s z P(z) with c = 2 / ln 2 (1e-10).
    let (c, c_low) = (V::splat(2.885_39), V::splat(3.851_926e-8));
    let z = s.mul(s);
    let p = polynomial(z, [0.336_587_5, 0.411_901_28, 0.577_079_8, 0.961_796_7]);
    let high = c.mul(s);
    let low = c.fma(s, V::splat(0.0).sub(high)).add(c.fma(s_low, c_low.mul(s)));
    let low = z.mul(s).fma(p, low);
    // e is 0 or the larger one.
    let sum = e.add(high);
    (sum, high.sub(sum.sub(e)).add(low))
}

/// `x` to the power `y`, with the special cases of IEEE 754; relative error below 1e-6.
#[inline(always)]
pub fn pow<V: Lanes>(x: V, y: V) -> V {
    let (zero, one, infinity) = (V::splat(0.0), V::splat(1.0), V::splat(f32::INFINITY));
    let size = x.abs();
    let (high, low) = log2_parts(size);
    let low = size.less(infinity).and(zero.less(size)).choose(low, zero);
    let high = of_odd_numbers(size, high);
    // y log2 x, again in two parts; far out only the first says something.
    let t = y.mul(high);
    let t_low = y.mul(low).add(y.fma(high, zero.sub(t)));
    let t_low = t.abs().less(V::splat(200.0)).choose(t_low, zero);
    let t = V::splat(200.0).min(V::splat(-200.0).max(t));
    let n = t.round();
    let r = t.sub(n).add(t_low).mul(V::splat(std::f32::consts::LN_2));
    let value = exp_near(r).scale(n);
    // Of a number below 0 there are whole powers only; odd ones are below 0.
    let (half, whole) = (y.mul(V::splat(0.5)), y.round().equal(y));
    let odd = whole.and(half.round().equal(half).xor(V::word(u32::MAX)));
    let negative = V::word(1 << 31).and(x);
    let value = value.xor(odd.and(negative));
    let root = x.less(zero).and(whole.xor(V::word(u32::MAX))).and(size.less(infinity));
    let value = root.choose(V::splat(f32::NAN), value);
    // Without a limit, and yet 1: any power of 1, the zeroth of anything, infinite ones of -1.
    let unit = x.equal(one).or(y.equal(zero)).or(size.equal(one).and(y.abs().equal(infinity)));
    unit.choose(one, value)
}
