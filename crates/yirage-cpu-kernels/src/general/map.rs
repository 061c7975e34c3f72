//! A program, element by element.

use super::bases::Bases;
use super::operand::{LoopSizes, StridedInput, StridedOutput};
use super::program::ElementProgram;
use super::ranges::Ranges;
use super::strips::BoundElementProgram;
use crate::isa::Isa;
use std::ops::Range;

/// A program with the operands of a run.
pub struct BoundMap<'a> {
    bound: BoundElementProgram<'a>,
    bases: Bases,
    count: usize,
}

impl<'a> BoundMap<'a> {
    /// A loop of these sizes.
    ///
    /// # Panics
    /// If the operands are not of the program's types, but for floats of other widths, or have not a stride for each size.
    pub fn new(
        program: &'a ElementProgram,
        sizes: &LoopSizes,
        inputs: &[StridedInput],
        output: StridedOutput,
    ) -> BoundMap<'a> {
        let operands = inputs.iter().map(|input| (input.elem, input.strides));
        let bound = BoundElementProgram::new(program, sizes, operands, (output.elem, output.strides));
        BoundMap { bound, bases: Bases::of(inputs, output.base), count: sizes.count() }
    }

    /// The program's value for the elements `range` of the loop, in row-major order. Rows `a..b` of `[rows, width]` are
    /// elements `a * width..b * width`.
    ///
    /// # Safety
    /// All elements of the range exist in the inputs and the output, as [`StridedInput::within`] and [`StridedOutput::within`] check;
    /// no two of the output are one; its memory is that of inputs at the same places, or of none.
    ///
    /// # Panics
    /// If the range ends past the loop.
    pub unsafe fn run(&self, isa: Isa, range: Range<usize>) {
        // SAFETY: what `BoundMap::run` is promised; `StridedInput::within` and `StridedOutput::within` check the
        // operands.
        unsafe { self.run_ranges(isa, Ranges::one(range), &[]) }
    }

    /// [`BoundMap::run`] of the elements `range` of each of `rows` rows, which are `width` elements apart, with other addresses
    /// of the first elements of the first inputs.
    ///
    /// # Safety
    /// As for [`BoundMap::run`], with these inputs.
    ///
    /// # Panics
    /// As [`BoundMap::run`].
    pub unsafe fn run_rows(&self, isa: Isa, range: Range<usize>, rows: usize, width: usize, first: &[*const u8]) {
        // SAFETY: what `BoundMap::run_rows` is promised; `StridedInput::within` and `StridedOutput::within` check the
        // operands.
        unsafe { self.run_ranges(isa, Ranges::rows(range, rows, width), first) }
    }

    /// # Safety
    /// As for [`BoundMap::run_rows`].
    unsafe fn run_ranges(&self, isa: Isa, ranges: Ranges, first: &[*const u8]) {
        assert!(ranges.end() <= self.count, "elements up to {} of {}", ranges.end(), self.count);
        let mut bases = self.bases;
        bases.inputs.iter_mut().zip(first).for_each(|(base, first)| *base = *first);
        // SAFETY: what `BoundMap::run_ranges` is promised; `StridedInput::within` and `StridedOutput::within` check
        // the operands.
        unsafe { self.bound.run_ranges(isa, &bases, ranges) }
    }
}

/// [`BoundMap::run`] of a loop that is run once.
///
/// # Safety
/// As for [`BoundMap::run`].
///
/// # Panics
/// As [`BoundMap::new`] and [`BoundMap::run`].
pub unsafe fn map(
    isa: Isa,
    program: &ElementProgram,
    sizes: &LoopSizes,
    inputs: &[StridedInput],
    output: StridedOutput,
    range: Range<usize>,
) {
    // SAFETY: what `map` is promised; `StridedInput::within` and `StridedOutput::within` check the operands.
    unsafe { BoundMap::new(program, sizes, inputs, output).run(isa, range) }
}
