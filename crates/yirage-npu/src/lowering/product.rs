//! Products of matrices. Where all elements are of one type the operator gets them as they are: it adds in f32 and rounds once.

use super::{NodeTensors, inputs};
use crate::operators::{Operator, OperatorSequence, TensorView};
use yirage_ir::op::MatMul;

pub(super) fn linear(tensors: &NodeTensors, made: &mut OperatorSequence) -> Option<()> {
    let [x, w] = inputs(tensors)?;
    product(Operator::MatMul, [x, &w.transposed()], &tensors.output, made);
    Some(())
}

pub(super) fn matmul(matmul: &MatMul, tensors: &NodeTensors, made: &mut OperatorSequence) -> Option<()> {
    let [a, b] = inputs(tensors)?;
    let (m, n) = (u64::from(matmul.m), u64::from(matmul.n));
    let [rows, row] = a.shape[..] else { return None };
    let k = row / m;
    let (a, b) = (a.reshaped(vec![rows, m, k]), b.reshaped(vec![rows, k, n]));
    product(Operator::BatchMatMul, [&a, &b], &tensors.output.reshaped(vec![rows, m, n]), made);
    Some(())
}

fn product(operator: Operator, [a, b]: [&TensorView; 2], output: &TensorView, made: &mut OperatorSequence) {
    if output.elements() == 0 {
        return;
    }
    if a.element == b.element && a.element == output.element {
        return made.call(operator, [a.clone(), b.clone()], output);
    }
    let (a, b, y) = (made.as_f32(a), wide(b, made), made.f32_for(output));
    made.call(operator, [a, b], &y);
    made.store(&y, output);
}

/// As f32, in the order in which the elements lie.
fn wide(matrix: &TensorView, made: &mut OperatorSequence) -> TensorView {
    if matrix.shape.len() == 2 { made.as_f32(&matrix.transposed()).transposed() } else { made.as_f32(matrix) }
}
