//! Calls of a library's operators as data: what is computed of which tensors, and where those lie.
//!
//! Unknown here: how a vendor's library is told.

use crate::limits::ALIGN;
use yirage_ir::expr::Func;
use yirage_ir::{DType, Format};

/// The elements of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OperandElement {
    F32,
    F16,
    BF16,
    /// Also 32 bits without a sign, where they are only moved.
    I32,
    Bool,
}

impl OperandElement {
    /// Of a value's elements; none of those that no operator reads.
    pub(crate) fn of(dtype: DType) -> Option<OperandElement> {
        Some(match dtype {
            DType::Stored(Format::F32) => OperandElement::F32,
            DType::Stored(Format::F16) => OperandElement::F16,
            DType::Stored(Format::BF16) => OperandElement::BF16,
            DType::I32 | DType::U32 => OperandElement::I32,
            DType::Bool => OperandElement::Bool,
            DType::Stored(_) | DType::I8 => return None,
        })
    }

    pub(crate) fn bytes(self) -> u64 {
        match self {
            OperandElement::F32 | OperandElement::I32 => 4,
            OperandElement::F16 | OperandElement::BF16 => 2,
            OperandElement::Bool => 1,
        }
    }
}

/// Whose memory a tensor lies in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TensorMemory {
    /// A binding of the operation, by its number.
    Binding(usize),
    /// Bytes of the workspace from this one on.
    Temporary(u64),
}

/// A tensor: elements of memory, a stride apart along each dimension.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TensorView {
    pub(crate) memory: TensorMemory,
    pub(crate) element: OperandElement,
    pub(crate) shape: Vec<u64>,
    pub(crate) strides: Vec<u64>,
    /// The element of the memory that comes first.
    pub(crate) offset: u64,
}

impl TensorView {
    /// Elements one after the other from the first of the memory on.
    pub(crate) fn dense(memory: TensorMemory, element: OperandElement, shape: Vec<u64>) -> TensorView {
        let mut strides = vec![1; shape.len()];
        for axis in (1..shape.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis].max(1);
        }
        TensorView { memory, element, shape, strides, offset: 0 }
    }

    pub(crate) fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Whether its elements lie one after the other.
    pub(crate) fn is_dense(&self) -> bool {
        let mut behind = 1;
        self.shape.iter().zip(&self.strides).rev().all(|(&size, &stride)| {
            let fits = size == 1 || stride == behind;
            behind *= size;
            fits
        })
    }

    /// Elements of the memory up to behind the last that is reached.
    pub(crate) fn reach(&self) -> u64 {
        if self.elements() == 0 {
            return self.offset;
        }
        let last: u64 = self.shape.iter().zip(&self.strides).map(|(n, stride)| (n - 1) * stride).sum();
        self.offset + last + 1
    }

    /// The same elements of a dense tensor as another shape.
    #[must_use]
    pub(crate) fn reshaped(&self, shape: Vec<u64>) -> TensorView {
        TensorView { offset: self.offset, ..TensorView::dense(self.memory, self.element, shape) }
    }

    /// Every `step`th element along an axis, `size` of them from `start` on.
    #[must_use]
    pub(crate) fn part(&self, axis: usize, start: u64, step: u64, size: u64) -> TensorView {
        let mut part = self.clone();
        part.offset += start * self.strides[axis];
        part.strides[axis] *= step;
        part.shape[axis] = size;
        part
    }

    /// Rows as columns.
    #[must_use]
    pub(crate) fn transposed(&self) -> TensorView {
        let mut other = self.clone();
        other.shape.reverse();
        other.strides.reverse();
        other
    }
}

/// What is computed. All have one output; those that say 'in place' change it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Operator {
    /// A function of elements.
    Function(Func),
    /// The same numbers as the output's elements.
    Cast,
    /// In place: becomes what the input is, spread along its dimensions of size 1.
    Copy,
    /// In place: every element becomes this.
    Fill(f32),
    /// In place: where the input is true, becomes this.
    MaskedFill(f32),
    /// Times this.
    Scale(f32),
    /// Plus this.
    AddScalar(f32),
    /// Whole numbers of at least the first and at most the second.
    Clamp(i32, i32),
    /// Whether two are unequal.
    NotEqual,
    /// Slices of the first input along its outermost dimension, chosen by the second.
    IndexSelect,
    /// In place: slices along the outermost dimension, chosen by the first input, become those of the second.
    IndexCopy,
    /// The product of two matrices.
    MatMul,
    /// Products of as many matrices.
    BatchMatMul,
    /// Rows of mean square 1, times the second input; the third is memory for one f32 of each row.
    RmsNorm(f32),
    /// Along the innermost dimension.
    Softmax,
    /// What a library without some of these makes them of.
    Elementary(ElementaryOperator),
}

/// A part of an operator that a library lacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ElementaryOperator {
    /// The input, met again and again along its dimensions of size 1.
    Expand,
    /// The largest element along the innermost dimension, which stays with size 1.
    ReduceMax,
    /// The sum along the innermost dimension, which stays with size 1.
    ReduceSum,
    /// The error function.
    Erf,
    /// The second input where the first is true, else the third.
    Select,
}

/// A call of an operator.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct OperatorCall {
    pub(crate) operator: Operator,
    pub(crate) inputs: Vec<TensorView>,
    pub(crate) output: TensorView,
}

/// Calls one after the other, with memory for what goes from one to the next.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct OperatorSequence {
    pub(crate) calls: Vec<OperatorCall>,
    /// Bytes of temporaries, a multiple of what memory begins at.
    pub(crate) temporary_bytes: u64,
}

impl OperatorSequence {
    /// A call; of no element none.
    pub(crate) fn call(&mut self, operator: Operator, inputs: impl Into<Vec<TensorView>>, output: &TensorView) {
        if output.elements() > 0 {
            self.calls.push(OperatorCall { operator, inputs: inputs.into(), output: output.clone() });
        }
    }

    /// A dense tensor of this sequence alone.
    pub(crate) fn temporary(&mut self, element: OperandElement, shape: Vec<u64>) -> TensorView {
        let at = self.temporary_bytes;
        let tensor = TensorView::dense(TensorMemory::Temporary(at), element, shape);
        let bytes = (tensor.elements() * element.bytes()).next_multiple_of(u64::from(ALIGN));
        self.temporary_bytes = at + bytes;
        tensor
    }

    /// A tensor as f32.
    pub(crate) fn as_f32(&mut self, tensor: &TensorView) -> TensorView {
        if tensor.element == OperandElement::F32 {
            return tensor.clone();
        }
        let wide = self.temporary(OperandElement::F32, tensor.shape.clone());
        self.call(Operator::Cast, [tensor.clone()], &wide);
        wide
    }

    /// A tensor of f32 to compute into: the output itself, or one that [`Self::store`] rounds.
    pub(crate) fn f32_for(&mut self, output: &TensorView) -> TensorView {
        match output.element {
            OperandElement::F32 => output.clone(),
            _ => self.temporary(OperandElement::F32, output.shape.clone()),
        }
    }

    /// Rounds what was computed to the output's elements.
    pub(crate) fn store(&mut self, computed: &TensorView, output: &TensorView) {
        if computed.memory != output.memory {
            self.call(Operator::Cast, [computed.clone()], output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn views_reach_what_their_strides_say() {
        let x = TensorView::dense(TensorMemory::Binding(0), OperandElement::F16, vec![3, 4, 5]);
        assert_eq!((x.strides.as_slice(), x.reach(), x.elements()), (&[20, 5, 1][..], 60, 60));
        let odd = x.part(2, 1, 2, 2);
        assert_eq!((odd.offset, odd.strides[2], odd.reach()), (1, 2, 59));
        assert_eq!(x.reshaped(vec![12, 5]).transposed().strides, [1, 5]);
        assert_eq!(x.part(0, 3, 1, 0).reach(), 60);
    }

    #[test]
    fn nothing_is_called_for_no_element() {
        let mut sequence = OperatorSequence::default();
        let none = sequence.temporary(OperandElement::F32, vec![0, 8]);
        let wide = sequence.as_f32(&TensorView { element: OperandElement::F16, ..none.clone() });
        sequence.store(&wide, &none);
        assert_eq!((sequence.calls.len(), sequence.temporary_bytes), (0, 0));
    }
}
