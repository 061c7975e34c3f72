//! The elements of inputs: in each evaluation of either graph the same, by name and place alone.

use super::class::Class;
use super::program::EvalInput;
use yirage_ir::DType;
use yirage_ir::expr::Scalar;
use yirage_ir::quant::Format;
use yirage_ir::rng::{self, mix};

/// Three of four whole numbers stay below this, so that some are equal wherever they are compared.
const FEW: u64 = 2;

/// A random whole number that is valid wherever slices are chosen.
pub(super) fn choice(seed: u64, input: &EvalInput, at: usize) -> i64 {
    let (hash, below) = (rng::at(seed ^ input.key, at as u64), u64::from(input.below));
    let below = if hash >> 62 == 0 { below } else { below.min(FEW) };
    (hash % below) as i64
}

/// Element `at`, counted row-major, of an input; a number of its type.
pub(super) fn element(class: Class, seed: u64, input: &EvalInput, dtype: DType, sizes: &[usize], at: usize) -> f64 {
    let key = if class == Class::EqualOperands { mix(seed) } else { mix(seed ^ input.key) };
    let unit = |n: u64| (rng::at(key, n) >> 11) as f64 / (1u64 << 53) as f64;
    if dtype == DType::Bool {
        return f64::from(u8::from(unit(at as u64) < 0.5));
    }
    let width = sizes.last().copied().unwrap_or(1).max(1);
    let (row, column) = (at / width, at % width);
    let own = 2.0 * unit(at as u64) - 1.0;
    // Numbers of lines are far from those of elements.
    let line = |n: usize| unit((1 << 60) + n as u64);
    // Of f16, exponentials overflow above 11, and sums of products of large numbers at once.
    let narrow = dtype == DType::Stored(Format::F16);
    let large = if narrow { 16.0 } else { 200.0 };
    let (least, most) = if narrow { (1.0, 4.0f64) } else { (30.0, 3000.0) };
    // One sign in an input, so that rows of a matrix do not cancel each other.
    let sign = if mix(key) & 1 == 0 { 1.0 } else { -1.0 };
    let constant = |n: usize| sign * least * (most / least).powf(line(n));
    let value = match class {
        Class::Ordinary | Class::EqualOperands => own,
        Class::NearZeroRows if row % 2 == 1 => own * 1e-20,
        Class::NearZeroRows => own,
        Class::LargeLogits => large * own,
        Class::ConstantRows => constant(row) * (1.0 + 1e-4 * own),
        Class::ConstantColumns => {
            let below: usize = sizes.iter().skip(1).product::<usize>().max(1);
            constant(at % below) * (1.0 + 1e-4 * own)
        }
        Class::AlternatingSigns => (1.0 + 0.25 * own) * if at.is_multiple_of(2) { 1.0 } else { -1.0 },
        Class::OneHot => f64::from(u8::from((line(row) * width as f64) as usize == column)),
        Class::Subnormal => own * 1e-39,
    };
    Scalar::from(value as f32).cast(dtype).as_f64()
}
