//! How far each value of a case may be from the reference's.

use yirage_ir::op::{Case, Tolerance};
use yirage_ir::tensor::Data;
use yirage_ir::{DType, Format, Op, Tensor};

/// Of a cache: it is read through attention, which rounds as f32 arithmetic does.
pub(crate) const READ_BACK: Tolerance = Tolerance::Close { abs: 2e-6, rel: 2e-6 };

/// One bound a value of one output.
pub(crate) fn of(case: &Case, output: usize, want: &[f64]) -> Vec<f64> {
    match if matches!(case.op, Op::KvAppend(_)) { READ_BACK } else { case.tolerance } {
        Tolerance::Exact => vec![0.0; want.len()],
        Tolerance::Close { abs, rel } => {
            let bound = |w: &f64| finite(*w, f64::from(abs) + f64::from(rel) * w.abs());
            want.iter().map(bound).collect()
        }
        Tolerance::Terms => match &case.op {
            Op::Map(map) => map.bounds(&case.ins.iter().collect::<Vec<_>>()),
            _ => vec![0.0; want.len()],
        },
        Tolerance::SumOfProducts { c } => {
            let magnitudes: Vec<Tensor> = case.ins.iter().map(magnitude).collect();
            let sums = case.op.eval(&magnitudes.iter().collect::<Vec<_>>()).swap_remove(output);
            let bound = |(s, w): (&f32, &f64)| {
                let sum = f64::from(c) * f64::from(f32::EPSILON) * f64::from(*s);
                finite(*w, sum + neighbour(case.ins[0].dtype, *w))
            };
            sums.floats().iter().zip(want).map(bound).collect()
        }
    }
}

/// Infinities are none or the same.
fn finite(want: f64, bound: f64) -> f64 {
    if want.is_finite() { bound } else { 0.0 }
}

/// Sums of numbers of 16 bits are rounded to 16 bits: two that are close may become neighbours.
fn neighbour(dtype: DType, want: f64) -> f64 {
    match dtype {
        DType::Stored(Format::F16) => want.abs() * 2f64.powi(-10) + 2f64.powi(-24),
        DType::Stored(Format::BF16) => want.abs() * 2f64.powi(-7),
        _ => 0.0,
    }
}

/// The tensor with |value| for each number, decoded to f32; integers stay.
fn magnitude(t: &Tensor) -> Tensor {
    if matches!(t.data, Data::I32(_) | Data::U32(_)) {
        return t.clone();
    }
    let values = (0..t.rows()).flat_map(|r| t.row(r)).map(f32::abs).collect();
    Tensor { dtype: DType::F32, shape: t.shape.clone(), data: Data::F32(values) }
}
