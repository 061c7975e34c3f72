//! Functions of single elements: an expression, one call a term.

use super::NodeTensors;
use crate::operators::{OperandElement, Operator, OperatorSequence, TensorView};
use yirage_ir::expr::{Expr, Func, Scalar, Term};

/// The functions that operators compute of floats.
pub(crate) const FUNCTIONS: [Func; 20] = [
    Func::Add,
    Func::Sub,
    Func::Mul,
    Func::Div,
    Func::Min,
    Func::Max,
    Func::Neg,
    Func::Abs,
    Func::Exp,
    Func::Log,
    Func::Sqrt,
    Func::Rsqrt,
    Func::Recip,
    Func::Square,
    Func::Tanh,
    Func::Sigmoid,
    Func::Silu,
    Func::GeluErf,
    Func::GeluTanh,
    Func::Relu,
];

pub(super) fn map(expr: &Expr, tensors: &NodeTensors, made: &mut OperatorSequence) -> Option<()> {
    let last = expr.terms().len().checked_sub(1)?;
    // Without an element an operator is not asked, and shapes of 0 do not spread.
    if tensors.output.elements() == 0 {
        return Some(());
    }
    let mut values: Vec<TensorView> = Vec::with_capacity(expr.terms().len());
    for (at, term) in expr.terms().iter().enumerate() {
        let value = match *term {
            Term::Input(input) => {
                let input = tensors.inputs.get(input as usize)?.clone();
                is_float(&input).then_some(input)?
            }
            Term::Const(Scalar::F32(number)) => {
                let one = made.temporary(OperandElement::F32, vec![1]);
                made.call(Operator::Fill(number.0), [], &one);
                one
            }
            Term::Const(_) => return None,
            Term::Cast(to, x) => {
                let x = values[x as usize].clone();
                let element = OperandElement::of(to)?;
                let output = place(at == last, element, x.shape.clone(), tensors, made);
                is_float(&output).then_some(())?;
                made.call(Operator::Cast, [x], &output);
                output
            }
            Term::Call(func, _) => {
                FUNCTIONS.contains(&func).then_some(())?;
                let inputs: Vec<TensorView> = term.args().iter().map(|&x| made.as_f32(&values[x as usize])).collect();
                let shape = spread(&inputs)?;
                let output = place(at == last, OperandElement::F32, shape, tensors, made);
                made.call(Operator::Function(func), inputs, &output);
                output
            }
        };
        values.push(value);
    }
    // An input or a constant by itself, and what has less dimensions than the result: it is spread.
    let value = values.pop()?;
    if value != tensors.output {
        let value = if value.element == tensors.output.element { value } else { cast(&value, tensors, made) };
        made.call(Operator::Copy, [value], &tensors.output);
    }
    Some(())
}

fn cast(value: &TensorView, tensors: &NodeTensors, made: &mut OperatorSequence) -> TensorView {
    let rounded = made.temporary(tensors.output.element, value.shape.clone());
    made.call(Operator::Cast, [value.clone()], &rounded);
    rounded
}

/// Where a term's value goes: the last one into the result, where it has its type and shape.
fn place(
    is_last: bool,
    element: OperandElement,
    shape: Vec<u64>,
    tensors: &NodeTensors,
    made: &mut OperatorSequence,
) -> TensorView {
    let fits = tensors.output.element == element && tensors.output.shape == shape;
    if is_last && fits { tensors.output.clone() } else { made.temporary(element, shape) }
}

fn is_float(tensor: &TensorView) -> bool {
    matches!(tensor.element, OperandElement::F32 | OperandElement::F16 | OperandElement::BF16)
}

/// The shape of all together, aligned at the innermost dimension.
fn spread(inputs: &[TensorView]) -> Option<Vec<u64>> {
    let rank = inputs.iter().map(|input| input.shape.len()).max()?;
    let size = |axis: usize| {
        let sizes = inputs.iter().filter_map(|input| input.shape.iter().rev().nth(axis).copied());
        sizes.fold(1, |all, size| if all == 1 { size } else { all })
    };
    Some((0..rank).rev().map(size).collect())
}
