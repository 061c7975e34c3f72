//! How far each value of a case may be from the reference's.

use yirage_ir::op::{Case, Tolerance};
use yirage_ir::tensor::Data;
use yirage_ir::{DType, Op, Tensor};

/// Of a cache: it is read through attention, which rounds as f32 arithmetic does.
pub(crate) const READ_BACK: Tolerance = Tolerance::Close { abs: 2e-6, rel: 2e-6 };

/// One bound a value of one output.
pub(crate) fn of(case: &Case, output: usize, want: &[f32]) -> Vec<f64> {
    match if matches!(case.op, Op::KvAppend(_)) { READ_BACK } else { case.tolerance } {
        Tolerance::Exact => vec![0.0; want.len()],
        Tolerance::Close { abs, rel } => {
            want.iter().map(|w| f64::from(abs) + f64::from(rel) * f64::from(w.abs())).collect()
        }
        Tolerance::SumOfProducts { c } => {
            let magnitudes: Vec<Tensor> = case.ins.iter().map(magnitude).collect();
            let sums = case.op.eval(&magnitudes.iter().collect::<Vec<_>>()).swap_remove(output);
            sums.floats().iter().map(|s| f64::from(c) * f64::from(f32::EPSILON) * f64::from(*s)).collect()
        }
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
