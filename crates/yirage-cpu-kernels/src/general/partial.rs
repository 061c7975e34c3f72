//! Reductions that go on: their partial results wait in memory between one part of the elements and the next.
//!
//! Where each part but the last has a multiple of [`PARTS`] elements, the results have the bits of one reduction of all.

use super::bases::Bases;
use super::elem::{ComputeType, Elem};
use super::fold::{Fold, JoinPartials};
use super::nest::Nest;
use super::operand::{LoopSizes, StridedInput, StridedOutput, Strides};
use super::program::ElementProgram;
use super::reduce::take_in;
use super::strips::BoundElementProgram;
use crate::isa::Isa;
use crate::simd::launch;
use yirage_ir::op::{PARTS, ReduceKind};
use yirage_ir::types::MAX_RANK;

/// Some elements of a reduction.
#[derive(Clone, Copy, Debug)]
pub struct PartialReduction<'a> {
    /// What becomes of the elements.
    pub kind: ReduceKind,
    /// Sizes of what is taken in.
    pub sizes: LoopSizes,
    /// The dimensions that are reduced, ascending.
    pub axes: &'a [usize],
    /// Makes the elements of the inputs.
    pub prologue: &'a ElementProgram,
    /// Inputs of the prologue, with strides for all dimensions.
    pub inputs: &'a [StridedInput],
}

impl PartialReduction<'_> {
    fn fold(&self) -> Fold {
        Fold { kind: self.kind, compute_type: self.prologue.result().compute_type() }
    }

    fn split(&self) -> (LoopSizes, LoopSizes, [bool; MAX_RANK]) {
        let mut axes = [false; MAX_RANK];
        self.axes.iter().for_each(|&axis| axes[axis] = true);
        (self.sizes.only(&axes, false), self.sizes.only(&axes, true), axes)
    }

    /// Results that there are.
    pub fn results(&self) -> usize {
        self.split().0.count()
    }

    /// Makes partial results of no elements.
    pub fn clear(&self, parts: &mut [[f32; PARTS]]) {
        parts.as_flattened_mut().fill(f32::from_bits(self.fold().none()));
    }

    /// Takes the elements in. The parts of each result follow each other, in row-major order of the dimensions that stay.
    ///
    /// # Safety
    /// All elements exist, as [`StridedInput::within`] checks.
    ///
    /// # Panics
    /// If the operands do not fit the program and sizes, there is no such reduction, or there are fewer parts than results.
    pub unsafe fn take(&self, isa: Isa, parts: &mut [[f32; PARTS]]) {
        let (kept, reduced, axes) = self.split();
        assert!(parts.len() >= kept.count(), "{} partial results of {:?}", parts.len(), kept);
        let fold = self.fold();
        let held = match fold.compute_type {
            ComputeType::I32 => Elem::I32,
            ComputeType::U32 => Elem::U32,
            _ => Elem::F32,
        };
        let along = |which: bool| self.inputs.iter().map(move |i| (i.elem, i.strides.only(&axes, which)));
        let prologue = BoundElementProgram::new(self.prologue, &reduced, along(true), (held, Strides::dense(&reduced)));
        let others = Nest::new(&kept, along(false).map(|(_, strides)| strides));
        for (at, parts) in parts.iter_mut().enumerate().take(kept.count()) {
            let mut bases = Bases::of(self.inputs, std::ptr::null_mut());
            let coords = others.coords(at);
            for (i, (base, input)) in bases.inputs.iter_mut().zip(self.inputs).enumerate() {
                *base = base.wrapping_offset(others.offset(i, &coords) * input.elem.bytes() as isize);
            }
            // SAFETY: what `PartialReduction::take` is promised; `StridedInput::within` and `StridedOutput::within`
            // check the operands.
            unsafe { take_in(isa, fold, &prologue, bases, reduced.count(), parts) };
        }
    }

    /// Joins the partial results of `count` elements each into dense results.
    ///
    /// # Safety
    /// There are as many elements of the output as results, which nobody else touches.
    pub unsafe fn join(&self, isa: Isa, count: usize, parts: &mut [[f32; PARTS]], out: StridedOutput) {
        let fold = self.fold();
        for (at, parts) in parts.iter_mut().enumerate().take(self.results()) {
            // SAFETY: the kernel holds slices alone, so it needs no promise.
            unsafe { launch(isa, JoinPartials { fold, parts: &mut *parts }) };
            fold.finish(&mut parts[..1], count);
            // SAFETY: what `PartialReduction::join` is promised; words of 32 bits, which results are held as;
            // `StridedInput::within` and `StridedOutput::within` check the operands.
            unsafe { out.base.cast::<f32>().add(at).write(parts[0]) };
        }
    }
}
