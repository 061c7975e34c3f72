//! How far a device's value of an expression may be from the reference's.
//!
//! A value comes with a bound of its error. Each function adds its own tolerance to what the errors of its arguments make
//! of its value. Behind a jump that lies within an error the bound is infinite: nothing is known.

use super::value::call;
use super::{Expr, Func, Scalar, Term, is_float};
use crate::dtype::DType;

/// A value of the reference, and how far a device's may be from it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounded {
    /// The reference's value.
    pub value: Scalar,
    /// The largest distance; infinite where nothing is known of the device's value.
    pub within: f64,
}

impl From<Scalar> for Bounded {
    fn from(value: Scalar) -> Bounded {
        Bounded { value, within: 0.0 }
    }
}

/// Which of two zeros a minimum or maximum gives is left open: such a zero is this far from itself, so that nobody
/// divides by it. No two numbers are as close.
const EITHER_ZERO: f64 = 1e-60;

impl Func {
    /// How far its value may be from that of f64, for exact arguments: (absolute, relative). Zeros are for functions that
    /// round once.
    pub fn tolerance(self) -> (f64, f64) {
        match self {
            // Their values are small far away from 0, where a relative error means little.
            Func::Tanh | Func::Sigmoid | Func::GeluErf | Func::GeluTanh | Func::Log => (1e-6, 1e-5),
            // Numbers below the smallest normal one may be 0.
            Func::Exp | Func::Pow | Func::Rsqrt => (1e-37, 1e-5),
            Func::Silu => (1e-7, 1e-7),
            _ => (0.0, 0.0),
        }
    }
}

impl Expr {
    /// The value for one element of each input, and how far a device's may be from it, each function rounded to f32 and
    /// within its [`Func::tolerance`]. The inputs have the types that [`Expr::infer`] has passed.
    pub fn bound(&self, ins: &[Bounded]) -> Bounded {
        let mut values: Vec<Bounded> = Vec::with_capacity(self.terms().len());
        for term in self.terms() {
            let value = match *term {
                Term::Input(i) => ins[i as usize],
                Term::Const(value) => value.into(),
                Term::Cast(to, x) => cast(to, values[x as usize]),
                Term::Call(func, args) => of(func, &args.map(|a| values[a as usize])[..func.arity()]),
            };
            values.push(value);
        }
        values[values.len() - 1]
    }
}

/// How far two numbers are apart: equal infinities and two NaN not at all, a number and NaN infinitely far.
fn apart(a: f64, b: f64) -> f64 {
    if a == b || (a.is_nan() && b.is_nan()) {
        return 0.0;
    }
    let distance = (a - b).abs();
    if distance.is_nan() { f64::INFINITY } else { distance }
}

/// Whether an error may carry a value over a jump this far away.
fn jumps(distance: f64, within: f64) -> bool {
    within > 2.0 * EITHER_ZERO && distance <= within
}

fn certain_or_unknown(unknown: bool) -> f64 {
    if unknown { f64::INFINITY } else { 0.0 }
}

fn cast(to: DType, x: Bounded) -> Bounded {
    let value = x.value.cast(to);
    if x.within == 0.0 || x.within.is_infinite() {
        return Bounded { value, within: x.within };
    }
    let v = x.value.as_f64();
    if to == DType::Bool {
        return Bounded { value, within: certain_or_unknown(jumps(v.abs(), x.within)) };
    }
    let end = |v: f64| apart(Scalar::from(v as f32).cast(to).as_f64(), value.as_f64());
    let within = end(v - x.within).max(end(v + x.within));
    Bounded { value, within: if is_float(to) { within.max(EITHER_ZERO) } else { certain_or_unknown(within > 0.0) } }
}

fn of(func: Func, args: &[Bounded]) -> Bounded {
    let scalars: Vec<Scalar> = args.iter().map(|a| a.value).collect();
    let value = call(func, &scalars);
    if func == Func::Select {
        return select(args);
    }
    let x: Vec<f64> = scalars.iter().map(|s| s.as_f64()).collect();
    let e: Vec<f64> = args.iter().map(|a| a.within).collect();
    let within = match value {
        _ if e.iter().any(|e| e.is_infinite()) => f64::INFINITY,
        Scalar::F32(_) => of_floats(func, &x, &e),
        Scalar::Bool(_) => certain_or_unknown(jumps((x[0] - x[1]).abs(), e[0] + e[1])),
        Scalar::I32(_) | Scalar::U32(_) => 0.0,
    };
    Bounded { value, within }
}

fn select(args: &[Bounded]) -> Bounded {
    let (chosen, other) = if args[0].value.as_f64() != 0.0 { (args[1], args[2]) } else { (args[2], args[1]) };
    if args[0].within == 0.0 {
        return chosen;
    }
    let other = apart(chosen.value.as_f64(), other.value.as_f64()) + other.within;
    let whole = matches!(chosen.value, Scalar::I32(_) | Scalar::U32(_) | Scalar::Bool(_));
    let other = if whole { certain_or_unknown(other > 0.0) } else { other };
    Bounded { within: chosen.within.max(other), ..chosen }
}

/// The bound of a function's value in f32 for arguments `x` that are within `e`.
fn of_floats(func: Func, x: &[f64], e: &[f64]) -> f64 {
    let exact = func.of_floats(x);
    let carried = if e.iter().all(|&e| e == 0.0) { 0.0 } else { carried(func, x, e, exact) };
    if carried.is_nan() || carried.is_infinite() {
        return f64::INFINITY;
    }
    if !exact.is_finite() {
        return 0.0;
    }
    let (abs, rel) = func.tolerance();
    // What rounds twice, here and there, may end on two neighbours.
    let rounded = if carried > 0.0 { f64::from(f32::EPSILON) * (exact.abs() + carried) + 2e-45 } else { 0.0 };
    // A tolerance is of the exact value, and the reference's is rounded: up to half a unit in the last place is its own.
    let own = if (abs, rel) == (0.0, 0.0) { 0.0 } else { f64::from(f32::EPSILON) / 2.0 * exact.abs() };
    let leaves_open = matches!(func, Func::Min | Func::Max | Func::Clamp | Func::Relu);
    // A zero times a zero that is left open is one, too, although nothing is carried by the product.
    let carries_open = matches!(func, Func::Mul | Func::Div) && e.iter().any(|&e| e > 0.0);
    let zeros = exact == 0.0 && (leaves_open || carries_open);
    let within = carried + rounded + abs + rel * exact.abs() + own + if zeros { EITHER_ZERO } else { 0.0 };
    let largest = f64::from(f32::MAX) * (1.0 + 2f64.powi(-25));
    match (exact.abs() - within > largest, exact.abs() + within > largest) {
        (true, _) => 0.0,
        (false, true) if within > 0.0 => f64::INFINITY,
        _ => within,
    }
}

/// How far apart the exact values are for arguments within `e` of `x`.
fn carried(func: Func, x: &[f64], e: &[f64], exact: f64) -> f64 {
    let ends = || apart(func.of_floats(&[x[0] - e[0]]), exact).max(apart(func.of_floats(&[x[0] + e[0]]), exact));
    match func {
        Func::Add | Func::Sub => e[0] + e[1],
        Func::Mul => x[0].abs() * e[1] + x[1].abs() * e[0] + e[0] * e[1],
        Func::Div if x[1].abs() <= e[1] => f64::INFINITY,
        Func::Div => (e[0] + exact.abs() * e[1]) / (x[1].abs() - e[1]),
        Func::Recip if x[0].abs() <= e[0] => f64::INFINITY,
        Func::Pow => power(x, e, exact),
        Func::Square => (2.0 * x[0].abs() + e[0]) * e[0],
        Func::Min | Func::Max | Func::Clamp => e.iter().copied().fold(0.0, f64::max),
        Func::Neg | Func::Abs | Func::Relu => e[0],
        // Nowhere steeper than 1.2.
        Func::Silu | Func::GeluErf | Func::GeluTanh => 1.2 * e[0],
        // They rise everywhere, or fall everywhere that they are defined.
        _ => ends(),
    }
}

/// A power is monotone in each argument where its base is positive.
fn power(x: &[f64], e: &[f64], exact: f64) -> f64 {
    if x[0] <= e[0] {
        return f64::INFINITY;
    }
    let corner = |a: f64, b: f64| apart((x[0] + a).powf(x[1] + b), exact);
    let corners = [corner(e[0], e[1]), corner(e[0], -e[1]), corner(-e[0], e[1]), corner(-e[0], -e[1])];
    corners.into_iter().fold(0.0, f64::max)
}
