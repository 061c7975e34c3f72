//! Division that is rounded as IEEE 754 says: graphics devices are allowed a few units in the last place.

use yirage_kir::{KernelWriter, Register, ScalarType};

/// A float's exponent and its 24 bits, the leading one among them, as of a normal number.
struct FloatParts {
    exponent: Register,
    mantissa: Register,
    is_normal: Register,
}

impl FloatParts {
    fn of(w: &mut KernelWriter, bits: Register) -> FloatParts {
        let (shift, mask) = (w.u32(23), w.u32(0xff));
        let exponent = w.shr(bits, shift);
        let exponent = w.and(exponent, mask);
        let (fraction, leading) = (w.u32(0x007f_ffff), w.u32(0x0080_0000));
        let mantissa = w.and(bits, fraction);
        let mantissa = w.or(mantissa, leading);
        FloatParts { is_normal: is_normal(w, exponent), exponent, mantissa }
    }
}

/// Whether an exponent is from 1 to 254.
fn is_normal(w: &mut KernelWriter, exponent: Register) -> Register {
    let (one, end) = (w.u32(1), w.u32(254));
    let from_zero = w.sub(exponent, one);
    w.less(from_zero, end)
}

/// `a / b` to nearest, ties to even, where both and the result are normal numbers; elsewhere as the device divides.
pub(crate) fn divide(w: &mut KernelWriter, a: Register, b: Register) -> Register {
    let elsewhere = w.div(a, b);
    let (a_bits, b_bits) = (w.bitcast(ScalarType::U32, a), w.bitcast(ScalarType::U32, b));
    let (a, b) = (FloatParts::of(w, a_bits), FloatParts::of(w, b_bits));
    let (zero, one) = (w.u32(0), w.u32(1));
    // The quotient of the mantissas is made to begin with a 1.
    let is_less = w.less(a.mantissa, b.mantissa);
    let shift = w.select(is_less, one, zero);
    let dividend = w.shl(a.mantissa, shift);
    let (mut rest, mut quotient) = (w.sub(dividend, b.mantissa), one);
    let byte = w.u32(8);
    for _ in 0..3 {
        let shifted = w.shl(rest, byte);
        let digit = w.div(shifted, b.mantissa);
        quotient = w.shl(quotient, byte);
        quotient = w.or(quotient, digit);
        rest = w.rem(shifted, b.mantissa);
    }
    let rounded = halved_to_even(w, quotient, rest);
    let bias = w.u32(127);
    let exponent = w.add(a.exponent, bias);
    let exponent = w.sub(exponent, b.exponent);
    let exponent = w.sub(exponent, shift);
    let bits = {
        let (place, leading) = (w.u32(23), w.u32(0x0080_0000));
        let high = w.shl(exponent, place);
        // A mantissa that was rounded up to the next power of two carries into the exponent.
        let low = w.sub(rounded, leading);
        w.add(high, low)
    };
    let (signs, sign) = (w.xor(a_bits, b_bits), w.u32(0x8000_0000));
    let sign = w.and(signs, sign);
    let bits = w.or(bits, sign);
    let exact = w.bitcast(ScalarType::F32, bits);
    let operands = w.and(a.is_normal, b.is_normal);
    let result = is_normal(w, exponent);
    let applies = w.and(operands, result);
    w.select(applies, exact, elsewhere)
}

/// Half of a whole number that has `rest` behind it, to nearest, ties to even.
fn halved_to_even(w: &mut KernelWriter, number: Register, rest: Register) -> Register {
    let (zero, one) = (w.u32(0), w.u32(1));
    let half = w.shr(number, one);
    let sticky = w.not_equal(rest, zero);
    let sticky = w.convert(ScalarType::U32, sticky);
    let above = w.or(half, sticky);
    let up = w.and(number, above);
    let up = w.and(up, one);
    w.add(half, up)
}
