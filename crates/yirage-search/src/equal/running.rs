//! What a graph is in exact arithmetic, and how far a device may be from that by rounding alone.
//!
//! A running error analysis (N. J. Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, section 3.3):
//! each number comes with a bound of the error it has in its own type, carried through each function to first order and
//! with the products of errors. A sum of n terms in the order of `reduce` has a depth of n / 64 + 6 roundings, a
//! contraction over k one of k. A depth of h counts as `2 sqrt(h)` roundings of the sum of all sizes: the constant of
//! section 3.1 is h, and the square root is what N. J. Higham and T. Mary show for rounding errors of mean zero ("A new
//! approach to probabilistic rounding error analysis", SIAM J. Sci. Comput. 41, 2019).
//!
//! A bound is infinite where rounding leaves every value possible: behind an overflow, a comparison that rounding may
//! turn, or a division by what may be zero. Such elements are open: they show nothing.

use super::class::Class;
use super::domain::{Domain, EvalStop, Matrices};
use super::inputs::{choice, element};
use super::map::wrapped;
use super::program::{EvalInput, rounds};
use yirage_ir::DType;
use yirage_ir::expr::{Func, Scalar};
use yirage_ir::op::ReduceKind;
use yirage_ir::quant::Format;

/// The value of exact arithmetic, and a bound of the distance from it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct BoundedFloat {
    pub(super) value: f64,
    pub(super) within: f64,
}

/// Exact values with bounds, on one class of inputs.
pub(super) struct RunningErrors {
    pub(super) class: Class,
    pub(super) seed: u64,
}

/// Half the distance from 1 to the next number.
pub(super) fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::Stored(Format::F16) => 2f64.powi(-11),
        DType::Stored(Format::BF16) => 2f64.powi(-8),
        _ => 2f64.powi(-24),
    }
}

/// The smallest normal number: what is smaller may be 0.
fn smallest(dtype: DType) -> f64 {
    if dtype == DType::Stored(Format::F16) { 2f64.powi(-14) } else { 2f64.powi(-126) }
}

fn largest(dtype: DType) -> f64 {
    if dtype == DType::Stored(Format::F16) { 65504.0 } else { f64::from(f32::MAX) }
}

/// `size * within`, where an exact argument carries nothing whatever it meets.
fn times(size: f64, within: f64) -> f64 {
    if within == 0.0 { 0.0 } else { size.abs() * within }
}

/// A value that carries an error of `carried`, rounded `roundings` times at the size of `size`.
fn rounded(value: f64, carried: f64, roundings: f64, size: f64, dtype: DType) -> BoundedFloat {
    if carried.is_nan() || carried.is_infinite() {
        return BoundedFloat { value, within: f64::INFINITY };
    }
    if !value.is_finite() || !size.is_finite() {
        return BoundedFloat { value, within: if size.is_nan() == value.is_nan() { carried } else { f64::INFINITY } };
    }
    if value.abs().max(size) > largest(dtype) {
        return BoundedFloat { value, within: f64::INFINITY };
    }
    let lost = if value != 0.0 && value.abs() < smallest(dtype) { smallest(dtype) } else { 0.0 };
    BoundedFloat { value, within: carried + roundings * unit(dtype) * size + lost }
}

/// The roundings that a chain of `depth` counts as.
fn chain(depth: usize) -> f64 {
    2.0 * (depth as f64).sqrt()
}

fn sum(x: &[BoundedFloat], dtype: DType) -> BoundedFloat {
    let value: f64 = x.iter().map(|x| x.value).sum();
    let size: f64 = x.iter().map(|x| x.value.abs()).sum();
    let carried: f64 = x.iter().map(|x| x.within).sum();
    // The partial sums are of f32, the result of its own type.
    let partial = rounded(value, carried, chain(x.len() / 64 + 6), size, DType::F32);
    rounded(value, partial.within, if dtype == DType::F32 { 0.0 } else { 1.0 }, value.abs(), dtype)
}

fn float(x: BoundedFloat, carried: f64, roundings: f64) -> BoundedFloat {
    rounded(x.value, carried, roundings, x.value.abs(), DType::F32)
}

fn mul(x: BoundedFloat, y: BoundedFloat) -> BoundedFloat {
    let value = BoundedFloat { value: x.value * y.value, within: 0.0 };
    float(value, product_error(x, y), 1.0)
}

fn product_error(x: BoundedFloat, y: BoundedFloat) -> f64 {
    times(x.value, y.within) + times(y.value, x.within) + times(x.within, y.within)
}

/// The furthest that a function is from its value when its argument is within its bound; functions that rise or fall
/// everywhere, or are flat enough in between.
fn ends(func: Func, x: BoundedFloat) -> f64 {
    let value = func.of_floats(&[x.value]);
    let far = |x: f64| {
        let other = func.of_floats(&[x]);
        if other == value { 0.0 } else { (other - value).abs() }
    };
    if x.within == 0.0 { 0.0 } else { far(x.value - x.within).max(far(x.value + x.within)) }
}

fn open_unless(certain: bool) -> f64 {
    if certain { 0.0 } else { f64::INFINITY }
}

fn call(func: Func, x: &[BoundedFloat]) -> BoundedFloat {
    let values: Vec<f64> = x.iter().map(|x| x.value).collect();
    let value = BoundedFloat { value: func.of_floats(&values), within: 0.0 };
    if x.iter().any(|x| x.within.is_infinite()) && func != Func::Select {
        return BoundedFloat { within: f64::INFINITY, ..value };
    }
    let furthest = x.iter().map(|x| x.within).fold(0.0, f64::max);
    match func {
        Func::Add | Func::Sub => float(value, x[0].within + x[1].within, 1.0),
        Func::Mul => mul(x[0], x[1]),
        Func::Square => mul(x[0], x[0]),
        Func::Div => div(x[0], x[1], value),
        Func::Recip => div(BoundedFloat { value: 1.0, within: 0.0 }, x[0], value),
        Func::Pow => power(x, value),
        Func::Neg | Func::Abs | Func::Relu | Func::Min | Func::Max | Func::Clamp => {
            BoundedFloat { within: furthest, ..value }
        }
        Func::Less | Func::LessEqual | Func::Equal | Func::NotEqual => {
            let (far, within) = ((x[0].value - x[1].value).abs(), x[0].within + x[1].within);
            // NaN and infinities that meet themselves are certain.
            BoundedFloat { within: open_unless(within == 0.0 || far.is_nan() || far > within), ..value }
        }
        Func::Select => select(x),
        // Nowhere steeper than 1.2.
        Func::Silu | Func::GeluErf | Func::GeluTanh => float(value, 1.2 * x[0].within, 8.0),
        Func::Exp | Func::Log | Func::Sqrt | Func::Rsqrt | Func::Tanh | Func::Sigmoid => {
            let carried = ends(func, x[0]);
            float(value, if carried.is_nan() { f64::INFINITY } else { carried }, 8.0)
        }
    }
}

fn div(x: BoundedFloat, y: BoundedFloat, value: BoundedFloat) -> BoundedFloat {
    if y.within > 0.0 && y.value.abs() <= y.within {
        return BoundedFloat { within: f64::INFINITY, ..value };
    }
    let carried = x.within + times(value.value, y.within);
    // Nothing is carried through an exact division by zero.
    let carried = if carried == 0.0 { 0.0 } else { carried / (y.value.abs() - y.within) };
    float(value, carried, 1.0)
}

fn power(x: &[BoundedFloat], value: BoundedFloat) -> BoundedFloat {
    if x[0].within == 0.0 && x[1].within == 0.0 {
        return float(value, 0.0, 8.0);
    }
    if x[0].value <= x[0].within {
        return BoundedFloat { within: f64::INFINITY, ..value };
    }
    let corner =
        |a: f64, b: f64| ((x[0].value + a * x[0].within).powf(x[1].value + b * x[1].within) - value.value).abs();
    let corners = [corner(1.0, 1.0), corner(1.0, -1.0), corner(-1.0, 1.0), corner(-1.0, -1.0)];
    float(value, corners.into_iter().fold(0.0, f64::max), 8.0)
}

fn select(x: &[BoundedFloat]) -> BoundedFloat {
    let (chosen, other) = if x[0].value != 0.0 { (x[1], x[2]) } else { (x[2], x[1]) };
    if x[0].within == 0.0 || chosen == other {
        return chosen;
    }
    let far = (chosen.value - other.value).abs() + other.within;
    BoundedFloat { within: if far.is_nan() { f64::INFINITY } else { chosen.within.max(far) }, ..chosen }
}

impl Domain for RunningErrors {
    type Num = BoundedFloat;

    fn input(&mut self, input: &EvalInput, dtype: DType, sizes: &[usize], at: usize) -> BoundedFloat {
        let value = element(self.class, self.seed, input, dtype, sizes, at);
        // A device may take what is below the smallest normal number for 0.
        let lost = value != 0.0 && value.abs() < smallest(DType::F32);
        BoundedFloat { value, within: if lost { smallest(DType::F32) } else { 0.0 } }
    }

    fn whole_input(&mut self, input: &EvalInput, at: usize) -> i64 {
        choice(self.seed, input, at)
    }

    fn constant(&mut self, x: f32) -> BoundedFloat {
        BoundedFloat { value: x.into(), within: 0.0 }
    }

    fn whole(&mut self, x: i64) -> BoundedFloat {
        BoundedFloat { value: x as f64, within: 0.0 }
    }

    fn truth(&self, x: BoundedFloat) -> Option<bool> {
        Some(x.value != 0.0)
    }

    fn call(&mut self, func: Func, x: &[BoundedFloat]) -> Result<BoundedFloat, EvalStop> {
        Ok(call(func, x))
    }

    fn cast(&mut self, x: BoundedFloat, to: DType) -> BoundedFloat {
        let exact = x.within == 0.0 && Scalar::from(x.value as f32).cast(to).as_f64() == x.value;
        if exact || !rounds(to) { x } else { rounded(x.value, x.within, 1.0, x.value.abs(), to) }
    }

    fn cut_off(&mut self, x: BoundedFloat, to: DType) -> i64 {
        wrapped(Scalar::from(x.value as f32).cast(to).as_f64() as i64, to)
    }

    fn reduce(&mut self, kind: ReduceKind, x: &[BoundedFloat], dtype: DType) -> Result<BoundedFloat, EvalStop> {
        let count = BoundedFloat { value: x.len() as f64, within: 0.0 };
        let over = |sum: BoundedFloat| call(Func::Div, &[sum, count]);
        let stored = |x: BoundedFloat| self.cast(x, dtype);
        let furthest = || x.iter().map(|x| x.within).fold(0.0, f64::max);
        let nan = x.iter().any(|x| x.value.is_nan());
        let extreme = |start: f64, of: fn(f64, f64) -> f64| {
            let value = if nan { f64::NAN } else { x.iter().map(|x| x.value).fold(start, of) };
            BoundedFloat { value, within: furthest() }
        };
        let mut stored = stored;
        Ok(match kind {
            ReduceKind::Sum => sum(x, dtype),
            ReduceKind::Mean => stored(over(sum(x, DType::F32))),
            ReduceKind::Max => extreme(f64::NEG_INFINITY, f64::max),
            ReduceKind::Min => extreme(f64::INFINITY, f64::min),
            ReduceKind::Prod => stored(x.iter().fold(BoundedFloat { value: 1.0, within: 0.0 }, |all, &x| mul(all, x))),
            ReduceKind::MeanSquare => {
                let squares: Vec<BoundedFloat> = x.iter().map(|&x| mul(x, x)).collect();
                stored(over(sum(&squares, DType::F32)))
            }
        })
    }

    fn contract(&mut self, a: &[BoundedFloat], b: &[BoundedFloat], size: Matrices, dtype: DType) -> Vec<BoundedFloat> {
        let Matrices { m, k, n } = size;
        let mut out = Vec::with_capacity(m * n);
        for i in 0..m {
            let (mut value, mut whole, mut carried) = (vec![0.0; n], vec![0.0; n], vec![0.0; n]);
            for l in 0..k {
                let x = a[i * k + l];
                for (j, &y) in b[l * n..][..n].iter().enumerate() {
                    let product = x.value * y.value;
                    value[j] += product;
                    whole[j] += product.abs();
                    carried[j] += product_error(x, y);
                }
            }
            for j in 0..n {
                let chained = rounded(value[j], carried[j], chain(k), whole[j], DType::F32);
                let last = if dtype == DType::F32 { 0.0 } else { 1.0 };
                out.push(rounded(value[j], chained.within, last, value[j].abs(), dtype));
            }
        }
        out
    }

    fn digest(&self, _: BoundedFloat) -> u64 {
        0
    }

    fn closed(&mut self, _: u64) -> BoundedFloat {
        BoundedFloat { value: 0.0, within: f64::INFINITY }
    }
}
