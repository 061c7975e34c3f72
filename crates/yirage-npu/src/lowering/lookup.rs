//! Rows of tables: embeddings, and rotations by position.
//!
//! A number outside of a table gives rows of NaN and reads no other memory: an operator is given numbers that are inside.

use super::{MUL, NodeTensors, inputs};
use crate::operators::{OperandElement, Operator, OperatorSequence, TensorView};
use yirage_ir::expr::Func;
use yirage_ir::op::Rope;

/// Rows of a table as f32, one for each number.
fn rows(table: &TensorView, numbers: &TensorView, made: &mut OperatorSequence) -> Option<TensorView> {
    let [all, width] = table.shape[..] else { return None };
    let numbers = numbers.reshaped(vec![numbers.elements()]);
    let last = i32::try_from(all.checked_sub(1)?).ok()?;
    let inside = made.temporary(OperandElement::I32, numbers.shape.clone());
    made.call(Operator::Clamp(0, last), [numbers.clone()], &inside);
    let found = made.temporary(table.element, vec![numbers.elements(), width]);
    made.call(Operator::IndexSelect, [table.clone(), inside.clone()], &found);
    let found = made.as_f32(&found);
    let outside = made.temporary(OperandElement::Bool, numbers.shape.clone());
    made.call(Operator::NotEqual, [numbers.clone(), inside], &outside);
    made.call(Operator::MaskedFill(f32::NAN), [outside.reshaped(vec![numbers.elements(), 1])], &found);
    Some(found)
}

pub(super) fn embed(scale: f32, tensors: &NodeTensors, made: &mut OperatorSequence) -> Option<()> {
    let [table, ids] = inputs(tensors)?;
    let found = rows(table, ids, made)?;
    let factor = made.f32_for(&tensors.output);
    made.call(Operator::Scale(scale), [found], &factor);
    made.store(&factor, &tensors.output);
    Some(())
}

pub(super) fn rope(rope: &Rope, tensors: &NodeTensors, made: &mut OperatorSequence) -> Option<()> {
    let [x, cos, sin] = inputs(tensors)?;
    let (width, half) = (u64::from(rope.width), u64::from(rope.rotary / 2));
    let [count, row] = x.shape[..] else { return None };
    if tensors.output.elements() == 0 {
        return Some(());
    }
    let heads = vec![count, row / width, width];
    let (x, y) = (made.as_f32(x).reshaped(heads.clone()), made.f32_for(&tensors.output));
    let all = y.reshaped(heads);
    if half > 0 {
        let of_rows = |table: &TensorView, made: &mut OperatorSequence| {
            let found = match tensors.inputs.get(3) {
                Some(positions) => rows(table, positions, made)?,
                None => made.as_f32(table),
            };
            Some(found.reshaped(vec![count, 1, half]))
        };
        let (cos, sin) = (of_rows(cos, made)?, of_rows(sin, made)?);
        // Pairs that are neighbours are every second element.
        let (second, step) = if rope.interleaved { (1, 2) } else { (half, 1) };
        let pair = |x: &TensorView| [x.part(2, 0, step, half), x.part(2, second, step, half)];
        let ([a, b], [first, second]) = (pair(&x), pair(&all));
        // All products are there before anything is written: the result may lie where the input does.
        let mut product = |x: &TensorView, y: &TensorView| {
            let product = made.temporary(OperandElement::F32, a.shape.clone());
            made.call(MUL, [x.clone(), y.clone()], &product);
            product
        };
        let [ac, bs, bc, as_] = [product(&a, &cos), product(&b, &sin), product(&b, &cos), product(&a, &sin)];
        made.call(Operator::Function(Func::Sub), [ac, bs], &first);
        made.call(Operator::Function(Func::Add), [bc, as_], &second);
    }
    let rotary = 2 * half;
    if rotary < width && x.memory != all.memory {
        made.call(Operator::Copy, [x.part(2, rotary, 1, width - rotary)], &all.part(2, rotary, 1, width - rotary));
    }
    made.store(&y, &tensors.output);
    Some(())
}
