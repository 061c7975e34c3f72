//! What moves elements: views, joined values, the KV cache.

use super::{NodeTensors, inputs};
use crate::operators::{OperandElement, Operator, OperatorSequence, TensorView};
use yirage_ir::op::View;
use yirage_ir::strided::Strided;
use yirage_ir::{Dims, Type};

/// A copy of the elements where the view sees them; none of one that goes backwards, which no tensor does.
pub(super) fn view(
    view: &View,
    ty: &Type,
    dims: &Dims,
    tensors: &NodeTensors,
    made: &mut OperatorSequence,
) -> Option<()> {
    let [x] = inputs(tensors)?;
    if tensors.output.elements() == 0 {
        return Some(());
    }
    let seen = view.of(&Strided::of(ty)?)?;
    let mut from = x.clone();
    from.offset = u64::try_from(seen.offset).ok()?;
    from.strides = seen.strides.iter().map(|&stride| u64::try_from(stride).ok()).collect::<Option<_>>()?;
    from.shape = seen.shape.iter().map(|dim| dim.get(dims) as u64).collect();
    // What is met again and again is spread by the copy itself.
    for (size, stride) in from.shape.iter_mut().zip(&mut from.strides).filter(|(_, stride)| **stride == 0) {
        (*size, *stride) = (1, 1);
    }
    if from.shape.is_empty() {
        (from.shape, from.strides) = (vec![1], vec![1]);
    }
    made.call(Operator::Copy, [from], &tensors.output);
    Some(())
}

/// Each input to its part of the output.
pub(super) fn concat(axis: usize, tensors: &NodeTensors, made: &mut OperatorSequence) {
    let mut start = 0;
    for input in &tensors.inputs {
        let size = input.shape[axis];
        made.call(Operator::Copy, [input.clone()], &tensors.output.part(axis, start, 1, size));
        start += size;
    }
}

/// Keys and values to the positions that their slots name.
pub(super) fn kv_append(tensors: &NodeTensors, made: &mut OperatorSequence) -> Option<()> {
    let (slots, parts) = tensors.inputs.get(1..)?.split_last()?;
    let [blocks, positions, heads, width] = tensors.output.shape[..] else { return None };
    let cache = tensors.output.reshaped(vec![blocks * positions, heads, width]);
    let tokens = slots.elements();
    if tokens == 0 {
        return Some(());
    }
    matches!(cache.element, OperandElement::F32 | OperandElement::F16 | OperandElement::BF16).then_some(())?;
    // A position is written as a whole, which the operators of every library do.
    let given = match parts {
        [one] => rounded(&one.reshaped(vec![tokens, heads, width]), &cache, made),
        parts => joined(parts, &cache, [tokens, heads, width], made)?,
    };
    made.call(Operator::IndexCopy, [slots.clone(), given], &cache);
    Some(())
}

/// The parts of each head side by side, as the cache's elements.
fn joined(
    parts: &[TensorView],
    cache: &TensorView,
    [tokens, heads, width]: [u64; 3],
    made: &mut OperatorSequence,
) -> Option<TensorView> {
    let (whole, mut start) = (made.temporary(cache.element, vec![tokens, heads, width]), 0);
    for part in parts {
        let size = part.shape.get(1)? / heads;
        let given = rounded(&part.reshaped(vec![tokens, heads, size]), cache, made);
        made.call(Operator::Copy, [given], &whole.part(2, start, 1, size));
        start += size;
    }
    Some(whole)
}

fn rounded(given: &TensorView, cache: &TensorView, made: &mut OperatorSequence) -> TensorView {
    if given.element == cache.element {
        return given.clone();
    }
    let rounded = made.temporary(cache.element, given.shape.clone());
    made.call(Operator::Cast, [given.clone()], &rounded);
    rounded
}
