//! What looks at whole rows: norms, softmax.

use super::{NodeTensors, inputs};
use crate::operators::{OperandElement, Operator, OperatorSequence};
use yirage_ir::op::RmsNorm;

pub(super) fn rms_norm(norm: &RmsNorm, tensors: &NodeTensors, made: &mut OperatorSequence) -> Option<()> {
    let [x] = inputs(tensors)?;
    let width = u64::from(norm.width);
    let rows = x.elements() / width;
    if rows == 0 {
        return Some(());
    }
    let x = made.as_f32(x).reshaped(vec![rows, width]);
    let weight = match tensors.inputs.get(1) {
        Some(weight) => {
            let weight = made.as_f32(weight).reshaped(vec![width]);
            if norm.unit_offset {
                let distance = made.temporary(OperandElement::F32, vec![width]);
                made.call(Operator::AddScalar(1.0), [weight], &distance);
                distance
            } else {
                weight
            }
        }
        None => {
            let ones = made.temporary(OperandElement::F32, vec![width]);
            made.call(Operator::Fill(1.0), [], &ones);
            ones
        }
    };
    let (y, inverse) = (made.f32_for(&tensors.output), made.temporary(OperandElement::F32, vec![rows, 1]));
    made.call(Operator::RmsNorm(norm.eps.0), [x, weight, inverse], &y.reshaped(vec![rows, width]));
    made.store(&y, &tensors.output);
    Some(())
}

pub(super) fn softmax(tensors: &NodeTensors, made: &mut OperatorSequence) -> Option<()> {
    let [x] = inputs(tensors)?;
    let (x, y) = (made.as_f32(x), made.f32_for(&tensors.output));
    made.call(Operator::Softmax, [x], &y);
    made.store(&y, &tensors.output);
    Some(())
}
