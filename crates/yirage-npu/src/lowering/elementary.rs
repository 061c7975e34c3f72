//! Operators that a library lacks, made of those that it has: norms, softmax and activations of sums, products and exponentials, and
//! strided operands of dense ones that a copy makes.
//!
//! Each step is in f32 on a tensor of its own or in place, element by element, so the result is as near as one operator's.

use crate::operators::{ElementaryOperator, OperandElement, Operator, OperatorCall, OperatorSequence, TensorView};
use yirage_ir::expr::Func;

/// `sqrt(2 / pi)`.
const GELU_SLOPE: f32 = 0.797_884_6;
/// The share of the cube in `gelu_tanh`.
const GELU_CUBE: f32 = 0.044_715;

/// The same calls in terms of elementary ones.
pub(super) fn made_of_parts(sequence: OperatorSequence) -> OperatorSequence {
    let mut made = OperatorSequence { calls: Vec::new(), temporary_bytes: sequence.temporary_bytes };
    for OperatorCall { operator, inputs, output } in sequence.calls {
        one(operator, &inputs, &output, &mut made);
    }
    made
}

fn one(operator: Operator, inputs: &[TensorView], output: &TensorView, made: &mut OperatorSequence) {
    match operator {
        Operator::Copy => copy(&inputs[0], output, made),
        // Their operands are dense, or the columns of what is.
        Operator::Fill(_) | Operator::MatMul | Operator::BatchMatMul => made.call(operator, inputs, output),
        Operator::Cast => cast(&inputs[0], output, made),
        _ => {
            let inputs: Vec<TensorView> = inputs.iter().map(|input| dense(input, made)).collect();
            let is_dense = output.is_dense();
            // What changes its output in place reads it first.
            let in_place = matches!(operator, Operator::MaskedFill(_) | Operator::IndexCopy);
            let y = if is_dense { output.clone() } else { made.temporary(output.element, output.shape.clone()) };
            if in_place && !is_dense {
                made.call(Operator::Copy, [output.clone()], &y);
            }
            on_dense(operator, &inputs, &y, made);
            if !is_dense {
                made.call(Operator::Copy, [y], output);
            }
        }
    }
}

/// An operator of dense tensors.
fn on_dense(operator: Operator, inputs: &[TensorView], y: &TensorView, made: &mut OperatorSequence) {
    match operator {
        Operator::Function(func) => function(func, inputs, y, made),
        Operator::Softmax => softmax(&inputs[0], y, made),
        Operator::RmsNorm(eps) => rms_norm(eps, inputs, y, made),
        Operator::MaskedFill(number) => {
            let filler = made.temporary(y.element, vec![1]);
            made.call(Operator::Fill(number), [], &filler);
            let operands = [aligned(&inputs[0], y), aligned(&filler, y), y.clone()];
            made.call(Operator::Elementary(ElementaryOperator::Select), operands, y);
        }
        Operator::NotEqual => {
            made.call(operator, [aligned(&inputs[0], y), aligned(&inputs[1], y)], y);
        }
        other => made.call(other, inputs, y),
    }
}

/// A tensor with dimensions of size 1 before its own, as many as the result has.
fn aligned(x: &TensorView, y: &TensorView) -> TensorView {
    let before = y.shape.len().saturating_sub(x.shape.len());
    let shape: Vec<u64> = std::iter::repeat_n(1, before).chain(x.shape.iter().copied()).collect();
    let strides: Vec<u64> =
        std::iter::repeat_n(x.reach() - x.offset, before).chain(x.strides.iter().copied()).collect();
    TensorView { shape, strides, ..x.clone() }
}

/// The same elements one after the other.
fn dense(x: &TensorView, made: &mut OperatorSequence) -> TensorView {
    if x.is_dense() {
        return x.clone();
    }
    let dense = made.temporary(x.element, x.shape.clone());
    made.call(Operator::Copy, [x.clone()], &dense);
    dense
}

fn copy(x: &TensorView, y: &TensorView, made: &mut OperatorSequence) {
    let x = aligned(x, y);
    if x.shape == y.shape {
        return made.call(Operator::Copy, [x], y);
    }
    let (x, is_dense) = (dense(&x, made), y.is_dense());
    let spread = if is_dense { y.clone() } else { made.temporary(y.element, y.shape.clone()) };
    made.call(Operator::Elementary(ElementaryOperator::Expand), [x], &spread);
    if !is_dense {
        made.call(Operator::Copy, [spread], y);
    }
}

/// Between f32 and another type; from one of 16 bits to another by way of f32, which holds both exactly.
fn cast(x: &TensorView, y: &TensorView, made: &mut OperatorSequence) {
    if x.element == y.element {
        return copy(x, y, made);
    }
    let x = dense(x, made);
    let x = if y.element == OperandElement::F32 { x } else { made.as_f32(&x) };
    if x.element == y.element {
        return copy(&x, y, made);
    }
    let is_dense = y.is_dense();
    let to = if is_dense { y.clone() } else { made.temporary(y.element, y.shape.clone()) };
    made.call(Operator::Cast, [x], &to);
    if !is_dense {
        made.call(Operator::Copy, [to], y);
    }
}

/// A function of two tensors.
fn two(func: Func, a: &TensorView, b: &TensorView, y: &TensorView, made: &mut OperatorSequence) {
    made.call(Operator::Function(func), [aligned(a, y), aligned(b, y)], y);
}

/// A function of one tensor.
fn of(operator: Operator, x: &TensorView, y: &TensorView, made: &mut OperatorSequence) {
    made.call(operator, [x.clone()], y);
}

fn function(func: Func, inputs: &[TensorView], y: &TensorView, made: &mut OperatorSequence) {
    let x = &inputs[0];
    match (func, inputs) {
        (Func::Square, _) => two(Func::Mul, x, x, y, made),
        (Func::Relu, _) => {
            let zero = made.temporary(y.element, vec![1]);
            made.call(Operator::Fill(0.0), [], &zero);
            two(Func::Max, x, &zero, y, made);
        }
        (Func::Sigmoid, _) => sigmoid(x, y, made),
        (Func::Silu, _) => {
            let share = made.temporary(y.element, y.shape.clone());
            sigmoid(x, &share, made);
            two(Func::Mul, x, &share, y, made);
        }
        (Func::Tanh, _) => {
            // `tanh(x) = 2 * sigmoid(2 * x) - 1`.
            let t = made.temporary(y.element, y.shape.clone());
            of(Operator::Scale(2.0), x, &t, made);
            sigmoid(&t, &t, made);
            of(Operator::Scale(2.0), &t, &t, made);
            of(Operator::AddScalar(-1.0), &t, y, made);
        }
        (Func::GeluErf, _) => {
            let t = made.temporary(y.element, y.shape.clone());
            of(Operator::Scale(std::f32::consts::FRAC_1_SQRT_2), x, &t, made);
            of(Operator::Elementary(ElementaryOperator::Erf), &t, &t, made);
            of(Operator::AddScalar(1.0), &t, &t, made);
            of(Operator::Scale(0.5), &t, &t, made);
            two(Func::Mul, x, &t, y, made);
        }
        (Func::GeluTanh, _) => {
            // `(1 + tanh(u)) / 2 = sigmoid(2 * u)`.
            let t = made.temporary(y.element, y.shape.clone());
            two(Func::Mul, x, x, &t, made);
            of(Operator::Scale(GELU_CUBE), &t, &t, made);
            of(Operator::AddScalar(1.0), &t, &t, made);
            two(Func::Mul, x, &t, &t, made);
            of(Operator::Scale(2.0 * GELU_SLOPE), &t, &t, made);
            sigmoid(&t, &t, made);
            two(Func::Mul, x, &t, y, made);
        }
        (_, [a, b]) => two(func, a, b, y, made),
        _ => of(Operator::Function(func), x, y, made),
    }
}

/// `1 / (1 + exp(-x))`, which may become what it is of.
fn sigmoid(x: &TensorView, y: &TensorView, made: &mut OperatorSequence) {
    of(Operator::Function(Func::Neg), x, y, made);
    of(Operator::Function(Func::Exp), y, y, made);
    of(Operator::AddScalar(1.0), y, y, made);
    of(Operator::Function(Func::Recip), y, y, made);
}

/// A tensor for one number of each row.
fn of_rows(x: &TensorView, made: &mut OperatorSequence) -> TensorView {
    let mut shape = x.shape.clone();
    if let Some(width) = shape.last_mut() {
        *width = 1;
    }
    made.temporary(x.element, shape)
}

fn softmax(x: &TensorView, y: &TensorView, made: &mut OperatorSequence) {
    let row = of_rows(x, made);
    of(Operator::Elementary(ElementaryOperator::ReduceMax), x, &row, made);
    two(Func::Sub, x, &row, y, made);
    of(Operator::Function(Func::Exp), y, y, made);
    of(Operator::Elementary(ElementaryOperator::ReduceSum), y, &row, made);
    two(Func::Div, y, &row, y, made);
}

fn rms_norm(eps: f32, inputs: &[TensorView], y: &TensorView, made: &mut OperatorSequence) {
    let [x, weight, inverse] = inputs else { return };
    let width = x.shape.last().copied().unwrap_or(1);
    let squares = made.temporary(x.element, x.shape.clone());
    two(Func::Mul, x, x, &squares, made);
    of(Operator::Elementary(ElementaryOperator::ReduceSum), &squares, inverse, made);
    of(Operator::Scale(1.0 / width as f32), inverse, inverse, made);
    of(Operator::AddScalar(eps), inverse, inverse, made);
    of(Operator::Function(Func::Rsqrt), inverse, inverse, made);
    two(Func::Mul, x, inverse, &squares, made);
    two(Func::Mul, &squares, weight, y, made);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operators::TensorMemory;
    use std::slice::from_ref;

    fn bound(binding: usize, shape: &[u64]) -> TensorView {
        TensorView::dense(TensorMemory::Binding(binding), OperandElement::F32, shape.to_vec())
    }

    fn made_of(operator: Operator, inputs: &[TensorView], output: &TensorView) -> OperatorSequence {
        let mut whole = OperatorSequence::default();
        whole.call(operator, inputs, output);
        made_of_parts(whole)
    }

    #[test]
    fn only_copies_have_strided_operands_and_only_parts_are_left() {
        let (x, y) = (bound(0, &[3, 8]), bound(1, &[3, 8]));
        let (odd, even) = (x.part(1, 1, 2, 4), y.part(1, 0, 2, 4));
        let wide = bound(2, &[3, 1]);
        let functions =
            [Func::Silu, Func::Tanh, Func::GeluErf, Func::GeluTanh, Func::Relu, Func::Square, Func::Sigmoid];
        let each = functions.into_iter().map(Operator::Function).chain([Operator::Softmax]);
        for sequence in each.map(|operator| made_of(operator, from_ref(&odd), &even)) {
            for call in &sequence.calls {
                let strided = call.inputs.iter().chain([&call.output]).any(|tensor| !tensor.is_dense());
                assert!(!strided || call.operator == Operator::Copy, "{call:?}");
                let whole = matches!(call.operator, Operator::Softmax | Operator::RmsNorm(_) | Operator::MaskedFill(_))
                    || matches!(call.operator, Operator::Function(func) if functions.contains(&func));
                assert!(!whole, "{call:?}");
            }
        }
        let two = made_of(Operator::Function(Func::Mul), &[x.clone(), wide], &y);
        assert_eq!((two.calls.len(), two.temporary_bytes), (1, 0), "what a library has is one call");
    }

    #[test]
    fn a_copy_that_spreads_is_an_expansion_of_as_many_dimensions() {
        let (x, y) = (bound(0, &[4]), bound(1, &[3, 4]));
        let spread = made_of(Operator::Copy, from_ref(&x), &y);
        let expand = Operator::Elementary(ElementaryOperator::Expand);
        assert_eq!((spread.calls.len(), spread.calls[0].operator), (1, expand));
        assert_eq!(spread.calls[0].inputs[0].shape, [1, 4]);
        let plain = made_of(Operator::Copy, from_ref(&y), &bound(2, &[3, 4]));
        assert_eq!((plain.calls.len(), plain.calls[0].operator), (1, Operator::Copy));
    }
}
