//! A program, element by element.

use super::operand::{Input, Output, Sizes};
use super::program::Program;
use super::strips::{Bases, Bound};
use crate::isa::Isa;
use std::ops::Range;

/// The program's value for the elements `range` of the loop, in row-major order. Rows `a..b` of `[rows, width]` are
/// elements `a * width..b * width`.
///
/// # Safety
/// All elements of the range exist in the inputs and the output, as [`Input::within`] and [`Output::within`] check; no
/// two of the output are one; its memory is that of inputs at the same places, or of none.
///
/// # Panics
/// If the operands are not of the program's types, or have not a stride for each size.
pub unsafe fn map(isa: Isa, program: &Program, sizes: &Sizes, inputs: &[Input], output: Output, range: Range<usize>) {
    assert!(range.end <= sizes.count(), "elements {range:?} of {sizes:?}");
    let operands = inputs.iter().map(|input| (input.elem, input.strides));
    let bound = Bound::new(program, sizes, operands, (output.elem, output.strides));
    // SAFETY: the contract.
    unsafe { bound.run(isa, &Bases::of(inputs, output.base), range) }
}
