//! How far each value of a case may be from the reference's.

use yirage_ir::Op;
use yirage_ir::op::{OpCase, Tolerance};

/// Of a cache: it is read through attention, which rounds as f32 arithmetic does.
pub(crate) const READ_BACK: Tolerance = Tolerance::Close { abs: 2e-6, rel: 2e-6 };

/// One bound a value of one output.
pub(crate) fn of(case: &OpCase, output: usize, want: &[f64]) -> Vec<f64> {
    let tolerance = if matches!(case.op, Op::KvAppend(_)) { READ_BACK } else { case.tolerance };
    case.bounds_of(tolerance, output, want)
}
