//! The natural logarithm of a float of 64 bits that is not below 1, to about 2^-58 of it before it is rounded.

use crate::double::{self, Double};
use crate::wide::{self, Wide};
use yirage_kir::{KernelWriter, Register};

/// The 53 bits of the square root of 2.
const SQRT_2: u64 = 0x0016_a09e_667f_3bcc;

/// The logarithm of 2 in units of 2^-58.
const LN_2: u64 = 0x02c5_c85f_df47_3de6;

/// Terms of the series: what follows them is below 2^-60 of its sum.
const TERMS: u32 = 12;

/// `ln(x)`: that of the power of 2 next to `x`, and that of the rest m, which lies between the square roots of 1/2 and 2:
/// `2 z (1 + z^2/3 + z^4/5 + ...)` of `z = (m - 1) / (m + 1)`.
pub(crate) fn ln(w: &mut KernelWriter, x: Double) -> Double {
    let (place, bias, none, one) = (w.u32(20), w.u32(1023), w.u32(0), w.u32(1));
    let exponent = w.shr(x[1], place);
    let exponent = w.sub(exponent, bias);
    let (fraction, leading) = (w.u32(0x000f_ffff), w.u32(0x0010_0000));
    let high = w.and(x[1], fraction);
    let bits = [x[0], w.or(high, leading)];
    let root = wide::wide(w, SQRT_2);
    let is_large = wide::less(w, root, bits);
    let (unit, two) = (wide::wide(w, 1 << 52), wide::wide(w, 1 << 53));
    let against = wide::select(w, is_large, two, unit);
    let (above, below) = (wide::sub(w, bits, against), wide::sub(w, against, bits));
    let numerator = wide::select(w, is_large, below, above);
    let denominator = wide::add(w, bits, against);
    let (numerator, by) = wide::normalized(w, numerator);
    let (denominator, denominator_by) = wide::normalized(w, denominator);
    let down = w.sub(by, denominator_by);
    let quotient = quotient(w, numerator, denominator);
    let product = series(w, quotient, down);
    let up = w.select(is_large, one, none);
    let exponent = w.add(exponent, up);
    let near_one = {
        let (units, moved) = (w.u32(59), double::of_wide(w, product));
        let power = w.add(units, down);
        let power = w.sub(none, power);
        double::scaled(w, moved, power)
    };
    let far = {
        let (ln_2, most) = (wide::wide(w, LN_2), w.u32(63));
        let [power, _] = wide::full_product(w, ln_2, [exponent, none]);
        let down = w.add(down, one);
        let down = w.min(down, most);
        let (rest, _) = wide::shr(w, product, down);
        let (more, fewer) = (wide::add(w, power, rest), wide::sub(w, power, rest));
        let sum = wide::select(w, is_large, fewer, more);
        let (moved, units) = (double::of_wide(w, sum), w.u32(58u32.wrapping_neg()));
        double::scaled(w, moved, units)
    };
    let is_near_one = w.equal(exponent, none);
    wide::select(w, is_near_one, near_one, far)
}

/// `a / b` in units of 2^-62 of two numbers whose highest bits are 1, or of 0.
fn quotient(w: &mut KernelWriter, a: Wide, b: Wide) -> Wide {
    let (zero, one, rounds, top) = (w.u32(0), w.u32(1), w.u32(63), w.u32(31));
    let rest = a.map(|word| w.variable(word));
    let made = [w.variable(zero), w.variable(zero)];
    let carry = w.variable(zero);
    w.for_each(zero, rounds, one, |w, _| {
        let (own, carried) = (rest.map(|word| w.get(word)), w.get(carry));
        let (is_below, is_carried) = (wide::less(w, own, b), w.not_equal(carried, zero));
        let not_below = w.unary(yirage_kir::UnaryFunction::Not, is_below);
        let fits = w.or(is_carried, not_below);
        let less = wide::sub(w, own, b);
        let own = wide::select(w, fits, less, own);
        let digit = w.select(fits, one, zero);
        let so_far = made.map(|word| w.get(word));
        let so_far = wide::shl(w, so_far, one);
        let low = w.or(so_far[0], digit);
        w.set(made[0], low);
        w.set(made[1], so_far[1]);
        let (next_carry, next) = (w.shr(own[1], top), wide::shl(w, own, one));
        w.set(carry, next_carry);
        (0..2).for_each(|word| w.set(rest[word], next[word]));
    });
    made.map(|word| w.get(word))
}

/// `q (1 + z^2/3 + z^4/5 + ...)` in units of 2^-60, of `q` in units of 2^-62, where `z` is `q` that many bits down.
fn series(w: &mut KernelWriter, quotient: Wide, down: Register) -> Wide {
    let (one, two, zero, most) = (w.u32(1), w.u32(2), w.u32(0), w.u32(63));
    let by = w.sub(down, two);
    let by = w.min(by, most);
    let (z, _) = wide::shr(w, quotient, by);
    let [_, square] = wide::full_product(w, z, z);
    let sum = [w.variable(zero), w.variable(zero)];
    let terms = w.u32(TERMS + 1);
    w.for_each(zero, terms, one, |w, term| {
        let last = w.u32(TERMS);
        let power = w.sub(last, term);
        let odd = w.mul(power, two);
        let odd = w.add(odd, one);
        let factor = reciprocal(w, odd);
        let so_far = sum.map(|word| w.get(word));
        let [_, product] = wide::full_product(w, square, so_far);
        let next = wide::add(w, factor, product);
        (0..2).for_each(|word| w.set(sum[word], next[word]));
    });
    let sum = sum.map(|word| w.get(word));
    wide::full_product(w, quotient, sum)[1]
}

/// `2^62 / n`, cut off, of a number of at most 16 bits.
fn reciprocal(w: &mut KernelWriter, n: Register) -> Wide {
    let (whole, sixteen) = (w.u32(1 << 30), w.u32(16));
    let (high, mut rest) = (w.div(whole, n), w.rem(whole, n));
    let mut low = w.u32(0);
    for _ in 0..2 {
        let moved = w.shl(rest, sixteen);
        let digit = w.div(moved, n);
        rest = w.rem(moved, n);
        low = w.shl(low, sixteen);
        low = w.or(low, digit);
    }
    [low, high]
}
