//! Reductions of strided operands.
//!
//! Element e of the reduced dimensions, in row-major order, goes to partial result `e mod 64`; the partial results are
//! joined as [`yirage_ir::op::join_parts`] says. Along the reduced dimensions the partial results are the lanes; where
//! elements of neighbouring outputs are neighbours, the outputs are.

use super::bases::Bases;
use super::elem::{ComputeType, Elem};
use super::fold::{Fold, JoinEach, JoinPartials, Take, TakeEach};
use super::nest::Nest;
use super::operand::{LoopSizes, StridedInput, StridedOutput, Strides};
use super::program::ElementProgram;
use super::strips::BoundElementProgram;
use crate::isa::Isa;
use crate::simd::launch;
use std::ops::Range;
use yirage_ir::op::{PARTS, ReduceKind};
use yirage_ir::types::MAX_RANK;

/// Outputs that are made together.
const OUTPUTS: usize = 128;
/// Elements that are taken in together.
const ELEMENTS: usize = 8 * PARTS;

/// A reduction: of what, along which dimensions, and what becomes of the results.
#[derive(Clone, Copy, Debug)]
pub struct Reduction<'a> {
    /// What becomes of the elements.
    pub kind: ReduceKind,
    /// Sizes of what is reduced.
    pub sizes: LoopSizes,
    /// The dimensions that are reduced, ascending.
    pub axes: &'a [usize],
    /// Makes the elements that are reduced of the inputs: the identity, or what is fused.
    pub prologue: &'a ElementProgram,
    /// Inputs of the prologue, with strides for all dimensions.
    pub inputs: &'a [StridedInput],
    /// Makes the output of the reduced value, which is its input 0 (f32, i32 or u32).
    pub epilogue: &'a ElementProgram,
    /// Further inputs of the epilogue, with strides for the dimensions that stay.
    pub further: &'a [StridedInput],
    /// With strides for the dimensions that stay. Floats are rounded to its type.
    pub output: StridedOutput,
}

/// Output elements `range`, in row-major order of the dimensions that stay.
///
/// # Safety
/// All elements that these are made of exist, as [`StridedInput::within`] and [`StridedOutput::within`] check; no two of the output are
/// one; its memory is none of the inputs'.
///
/// # Panics
/// If the operands do not fit the programs and sizes, or there is no such reduction.
pub unsafe fn reduce(isa: Isa, what: &Reduction<'_>, range: Range<usize>) {
    let held = what.prologue.result().compute_type();
    let whole = matches!(what.kind, ReduceKind::Mean | ReduceKind::MeanSquare) && held != ComputeType::Float;
    assert!(held != ComputeType::Mask && !whole, "{} of {held:?}", what.kind);
    let split = ReductionAxes::new(what);
    assert!(range.end <= split.kept.count(), "outputs {range:?} of {:?}", split.kept);
    let run = ReductionRun::new(isa, what, &split, Fold { kind: what.kind, compute_type: held });
    let mut joined = ReducedOutputs([0.0; OUTPUTS]);
    for start in range.clone().step_by(OUTPUTS) {
        let outputs = start..range.end.min(start + OUTPUTS);
        // SAFETY: what `reduce` is promised; `StridedInput::within` and `StridedOutput::within` check the operands.
        unsafe { run.outputs(outputs, &mut joined) };
    }
}

/// Results of several outputs.
#[repr(align(64))]
struct ReducedOutputs([f32; OUTPUTS]);

/// Elements before they are taken in.
#[repr(align(64))]
struct ElementBuffer([f32; ELEMENTS]);

/// The dimensions, apart.
struct ReductionAxes {
    kept: LoopSizes,
    reduced: LoopSizes,
    /// Whether each dimension is reduced.
    axes: [bool; MAX_RANK],
}

impl ReductionAxes {
    fn new(what: &Reduction<'_>) -> ReductionAxes {
        let sizes = what.sizes.as_slice();
        let mut axes = [false; MAX_RANK];
        for &axis in what.axes {
            assert!(axis < sizes.len(), "axis {axis} of {sizes:?}");
            axes[axis] = true;
        }
        ReductionAxes { kept: what.sizes.only(&axes, false), reduced: what.sizes.only(&axes, true), axes }
    }
}

/// What all outputs share.
struct ReductionRun<'a> {
    isa: Isa,
    what: &'a Reduction<'a>,
    fold: Fold,
    count: usize,
    /// Whether outputs are the lanes.
    across: bool,
    /// The prologue over the dimensions that lanes go along: those that stay, or those that are reduced.
    prologue: BoundElementProgram<'a>,
    /// Where the inputs' elements lie along the other ones.
    others: Nest,
    epilogue: BoundElementProgram<'a>,
}

impl<'a> ReductionRun<'a> {
    fn new(isa: Isa, what: &'a Reduction<'a>, split: &ReductionAxes, fold: Fold) -> ReductionRun<'a> {
        let along = |reduced: bool| what.inputs.iter().map(move |i| (i.elem, i.strides.only(&split.axes, reduced)));
        let across = across(what, split);
        let (lanes, others) = if across { (split.kept, split.reduced) } else { (split.reduced, split.kept) };
        let held = match fold.compute_type {
            ComputeType::I32 => Elem::I32,
            ComputeType::U32 => Elem::U32,
            _ => Elem::F32,
        };
        let results = [(held, Strides::dense(&split.kept))];
        let further = what.further.iter().map(|input| (input.elem, input.strides));
        ReductionRun {
            isa,
            what,
            fold,
            count: split.reduced.count(),
            across,
            prologue: BoundElementProgram::new(what.prologue, &lanes, along(!across), (held, Strides::dense(&lanes))),
            others: Nest::new(&others, along(across).map(|(_, strides)| strides)),
            epilogue: BoundElementProgram::new(
                what.epilogue,
                &split.kept,
                results.into_iter().chain(further),
                (what.output.elem, what.output.strides),
            ),
        }
    }

    /// # Safety
    /// As [`reduce`], for at most [`OUTPUTS`] outputs.
    unsafe fn outputs(&self, outputs: Range<usize>, joined: &mut ReducedOutputs) {
        let (first, n) = (outputs.start, outputs.len());
        // SAFETY: what `ReductionRun::outputs` is promised; the epilogue finds result `first` at the start of the row.
        unsafe {
            if self.across {
                self.across(outputs.clone(), joined);
            } else {
                self.along(outputs.clone(), joined);
            }
            self.fold.finish(&mut joined.0[..n], self.count);
            let mut bases = Bases::of(&[], self.what.output.base);
            bases.inputs[0] = joined.0.as_ptr().wrapping_sub(first).cast();
            bases.inputs[1..].iter_mut().zip(self.what.further).for_each(|(base, input)| *base = input.base);
            self.epilogue.run(self.isa, &bases, outputs);
        }
    }

    /// The inputs' elements, shifted to element `other` of the dimensions that lanes do not go along.
    fn bases(&self, other: usize, out: *mut u8) -> Bases {
        let mut bases = Bases::of(self.what.inputs, out);
        let coords = self.others.coords(other);
        for (i, (base, input)) in bases.inputs.iter_mut().zip(self.what.inputs).enumerate() {
            let bytes = self.others.offset(i, &coords) * input.elem.bytes() as isize;
            *base = base.wrapping_offset(bytes);
        }
        bases
    }

    /// Each output by itself.
    ///
    /// # Safety
    /// As for [`reduce`], of these outputs.
    unsafe fn along(&self, outputs: Range<usize>, joined: &mut ReducedOutputs) {
        for (joined, output) in joined.0.iter_mut().zip(outputs) {
            let mut parts = [f32::from_bits(self.fold.none()); PARTS];
            let bases = self.bases(output, std::ptr::null_mut());
            // SAFETY: what `ReductionRun::along` is promised; `StridedInput::within` and `StridedOutput::within` check
            // the operands.
            unsafe { take_in(self.isa, self.fold, &self.prologue, bases, self.count, &mut parts) };
            // SAFETY: the kernel holds slices alone, so it needs no promise.
            unsafe { launch(self.isa, JoinPartials { fold: self.fold, parts: &mut parts }) };
            *joined = parts[0];
        }
    }

    /// All outputs at a time, element after element.
    ///
    /// # Safety
    /// As for [`reduce`], of these outputs, at most OUTPUTS.
    unsafe fn across(&self, outputs: Range<usize>, joined: &mut ReducedOutputs) {
        let (isa, fold) = (self.isa, self.fold);
        let (first, n) = (outputs.start, outputs.len());
        let (mut x, mut parts) = (ReducedOutputs([0.0; OUTPUTS]), PartialSums([[0.0; OUTPUTS]; PARTS]));
        let used = self.count.min(PARTS);
        parts.0[..used.max(1)].as_flattened_mut().fill(f32::from_bits(fold.none()));
        for element in 0..self.count {
            let bases = self.bases(element, x.0.as_mut_ptr().wrapping_sub(first).cast());
            // SAFETY: what `ReductionRun::across` is promised; output `first` is at the start of the row.
            unsafe { self.prologue.run(isa, &bases, outputs.clone()) };
            // SAFETY: the kernel holds slices alone, so it needs no promise.
            unsafe { launch(isa, TakeEach { fold, parts: &mut parts.0[element % PARTS], x: &x.0, n }) };
        }
        // SAFETY: the kernel holds slices alone, so it needs no promise.
        unsafe { launch(isa, JoinEach { fold, parts: parts.0.as_flattened_mut(), width: OUTPUTS, used }) };
        joined.0[..n].copy_from_slice(&parts.0[0][..n]);
    }
}

/// Takes `count` elements into the partial results of one output.
///
/// # Safety
/// The prologue's elements exist from `bases` on.
pub(super) unsafe fn take_in(
    isa: Isa,
    fold: Fold,
    prologue: &BoundElementProgram<'_>,
    mut bases: Bases,
    count: usize,
    parts: &mut [f32; PARTS],
) {
    let mut elements = ElementBuffer([0.0; ELEMENTS]);
    for start in (0..count).step_by(ELEMENTS) {
        let n = ELEMENTS.min(count - start);
        let x = &mut elements.0[..n];
        bases.out = x.as_mut_ptr().wrapping_sub(start).cast();
        // SAFETY: what `take_in` is promised; element `start` goes to the start of the array.
        unsafe { prologue.run(isa, &bases, start..start + n) };
        // SAFETY: the kernel holds slices alone, so it needs no promise.
        unsafe { launch(isa, Take { fold, parts, x }) };
    }
}

/// Partial results of several outputs.
#[repr(align(64))]
struct PartialSums([[f32; OUTPUTS]; PARTS]);

/// Whether lanes go along outputs: where most inputs' elements are neighbours so, and not along what is reduced; and
/// where so few elements are reduced that lanes along them would be empty.
fn across(what: &Reduction<'_>, split: &ReductionAxes) -> bool {
    if split.kept.count() < 2 || split.reduced.count() == 0 {
        return false;
    }
    let near = |reduced: bool| {
        let nest = Nest::new(
            if reduced { &split.reduced } else { &split.kept },
            what.inputs.iter().map(|input| input.strides.only(&split.axes, reduced)),
        );
        (0..what.inputs.len()).filter(|&i| nest.inner(i).abs() == 1).count()
    };
    split.reduced.count() < PARTS / 4 || near(false) > near(true)
}
