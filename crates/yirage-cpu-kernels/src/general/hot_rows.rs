//! An expression's own loop over rows whose elements lie one after the other.
//!
//! A call may be for a few elements (what a product has just made), so it has no strips to make room for.

use super::bases::Bases;
use super::convert::spread;
use super::elem::Elem;
use super::hot::Hot;
use super::nest::{AccessPattern, Nest};
use super::ranges::Ranges;
use super::step::LaneSource;
use crate::isa::Isa;
use crate::simd::{LANES, Lanes, WithLanes, launch};
use std::mem::MaybeUninit;
use yirage_ir::expr::MAX_INPUTS;

/// Output elements of some ranges of the loop, in row-major order. The nest has the inputs' strides, then the output's.
///
/// # Safety
/// All elements of the ranges exist and are f32. Those of a row lie one after the other in each operand, or, in an input,
/// are all the same. The output's memory is one input's at the same places, or none's.
pub(super) unsafe fn run(isa: Isa, hot: &Hot, nest: &Nest, bases: &Bases, inputs: usize, ranges: Ranges) {
    // SAFETY: `HotRowsKernel` wants what `run` is promised.
    unsafe { launch(isa, HotRowsKernel { hot, nest, bases, inputs, ranges }) };
}

/// Needs what [`run`] is promised.
struct HotRowsKernel<'a> {
    hot: &'a Hot,
    nest: &'a Nest,
    bases: &'a Bases,
    inputs: usize,
    ranges: Ranges,
}

impl WithLanes for HotRowsKernel<'_> {
    type Out = ();

    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let HotRowsKernel { hot, nest, bases, inputs, ranges } = self;
        if ranges.is_empty() {
            return;
        }
        let mut ones = [const { MaybeUninit::<[f32; LANES]>::uninit() }; MAX_INPUTS];
        let mut sources = [LaneSource::run(std::ptr::null()); MAX_INPUTS];
        for i in (0..inputs).filter(|i| nest.of(*i) == AccessPattern::One) {
            // SAFETY: the contract of `run`: the element exists.
            unsafe { spread::<V>(Elem::F32, bases.inputs[i], ones[i].as_mut_ptr().cast()) };
            sources[i] = LaneSource::same(ones[i].as_ptr().cast());
        }
        for range in ranges.each() {
            let (mut at, mut coords) = (range.start, nest.coords(range.start));
            while at < range.end {
                let first = |operand: usize| match nest.of(operand) {
                    AccessPattern::Dense => at as isize,
                    _ => nest.offset(operand, &coords),
                };
                for i in (0..inputs).filter(|i| nest.of(*i) != AccessPattern::One) {
                    sources[i] = LaneSource::run(bases.inputs[i].cast::<f32>().wrapping_offset(first(i)));
                }
                let n = nest.left_in_row(&coords).min(range.end - at);
                // SAFETY: the contract of `run`; n elements are left in the row.
                unsafe { hot.run::<V>(&sources, bases.out.cast::<f32>().offset(first(inputs)), n) };
                nest.advance(&mut coords, n);
                at += n;
            }
        }
    }
}
