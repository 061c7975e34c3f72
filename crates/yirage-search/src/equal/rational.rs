//! What a constant of a graph stands for in a field.
//!
//! An f32 constant is the rounding of a number somebody meant: 1e-5, or 1/3. In a field it is that number, exactly, so
//! that constants that are folded or moved fit. Two different constants never stand for one number: each number rounds
//! to one f32. What nobody wrote, as the root of two, is the f32 itself.

/// `number / over * 2^two * 10^ten`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rational {
    pub(super) number: i64,
    pub(super) over: u32,
    pub(super) two: i32,
    pub(super) ten: i32,
}

/// Most significant bits of a constant that is taken as it is.
const EXACT_BITS: u32 = 12;
/// Most significant digits of one that is taken as the decimal number it prints as.
const DECIMAL_DIGITS: usize = 6;
/// The largest number that 1 is divided by.
const MOST_PARTS: f64 = (1 << 20) as f64;
/// The largest denominator of another fraction.
const DENOMINATOR: u32 = 512;

/// The number that a finite constant stands for.
pub(super) fn meant(x: f32) -> Rational {
    let exact = exact(x);
    if 64 - exact.number.unsigned_abs().leading_zeros() <= EXACT_BITS {
        return exact;
    }
    decimal(x).or_else(|| part(x)).or_else(|| fraction(x)).unwrap_or(exact)
}

fn exact(x: f32) -> Rational {
    let bits = x.to_bits();
    let (exponent, fraction) = ((bits >> 23) & 0xff, i64::from(bits & 0x7f_ffff));
    let (mantissa, two) = if exponent == 0 { (fraction, -149) } else { (fraction | 1 << 23, exponent as i32 - 150) };
    let shift = mantissa.trailing_zeros().min(24) as i32;
    let number = if mantissa == 0 { 0 } else { mantissa >> shift };
    let two = if mantissa == 0 { 0 } else { two + shift };
    Rational { number: if x.is_sign_negative() { -number } else { number }, over: 1, two, ten: 0 }
}

/// The shortest decimal number that rounds to `x`, if it is short.
fn decimal(x: f32) -> Option<Rational> {
    let text = format!("{x:e}");
    let (digits, exponent) = text.split_once('e')?;
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.trim_start_matches('-').len() + rest.len() > DECIMAL_DIGITS {
        return None;
    }
    let number: i64 = format!("{whole}{rest}").parse().ok()?;
    Some(Rational { number, over: 1, two: 0, ten: exponent.parse::<i32>().ok()? - rest.len() as i32 })
}

/// One of a number of equal parts.
fn part(x: f32) -> Option<Rational> {
    let parts = (1.0 / f64::from(x.abs())).round();
    let fits = parts <= MOST_PARTS && (1.0 / parts) as f32 == x.abs();
    fits.then_some(Rational { number: if x < 0.0 { -1 } else { 1 }, over: parts as u32, two: 0, ten: 0 })
}

/// The fraction of the smallest denominator that rounds to `x`.
fn fraction(x: f32) -> Option<Rational> {
    if x.abs() > 1024.0 {
        return None;
    }
    let of = |over: u32| ((f64::from(x) * f64::from(over)).round(), over);
    let fits = |(number, over): &(f64, u32)| (number / f64::from(*over)) as f32 == x;
    let (number, over) = (1..=DENOMINATOR).map(of).find(fits)?;
    Some(Rational { number: number as i64, over, two: 0, ten: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use yirage_ir::rng::Rng;

    fn of(number: i64, over: u32, two: i32, ten: i32) -> Rational {
        Rational { number, over, two, ten }
    }

    #[test]
    fn constants_are_what_was_meant() {
        assert_eq!(meant(0.0), of(0, 1, 0, 0));
        assert_eq!(meant(-0.75), of(-3, 1, -2, 0));
        assert_eq!(meant(1e-5), of(1, 1, 0, -5));
        assert_eq!(meant(-0.1), of(-1, 1, 0, -1));
        assert_eq!(meant(0.044715), of(44715, 1, 0, -6));
        assert_eq!(meant(1.0 / 3.0), of(1, 3, 0, 0));
        assert_eq!(meant(-2.0 / 3.0), of(-2, 3, 0, 0));
        assert_eq!(meant(1.0 / 4095.0), of(1, 4095, 0, 0));
        assert_eq!(meant(f32::MIN_POSITIVE), of(1, 1, -126, 0));
        assert_eq!(meant(std::f32::consts::SQRT_2), exact(std::f32::consts::SQRT_2));
    }

    #[test]
    fn what_is_meant_rounds_to_the_constant() {
        let mut rng = Rng::new(6);
        let value = |r: Rational| r.number as f64 / f64::from(r.over) * 2f64.powi(r.two) * 10f64.powi(r.ten);
        for i in 0..20_000 {
            let x = if i % 2 == 0 { f32::from_bits(rng.next_u64() as u32) } else { rng.below(3000) as f32 / 1000.0 };
            if x.is_normal() && (1e-20..1e20).contains(&x.abs()) {
                assert_eq!(value(meant(x)) as f32, x);
            }
        }
    }
}
