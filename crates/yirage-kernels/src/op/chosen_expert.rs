//! The expert that a token has chosen, as kernels read it: one that there is, none, or a number that is no expert's.

use crate::elements::Elements;
use yirage_ir::op::NO_EXPERT;
use yirage_kir::{KernelWriter, Register, ScalarType};

/// A choice that was read.
#[derive(Clone, Copy)]
pub(super) struct ChosenExpert {
    /// The choice as it was made.
    choice: Register,
    /// The expert, or the first where there is none: one whose weights can be read.
    pub(super) number: Register,
    /// Whether there is such an expert.
    pub(super) is_there: Register,
}

impl ChosenExpert {
    /// Reads a choice among so many experts.
    pub(super) fn load(w: &mut KernelWriter, chosen: Elements, at: Register, count: u32) -> ChosenExpert {
        let (choice, count, zero) = (chosen.load(w, at), w.u32(count), w.u32(0));
        // As a number without sign, one below 0 is too large.
        let choice = w.bitcast(ScalarType::U32, choice);
        let is_there = w.less(choice, count);
        ChosenExpert { choice, number: w.select(is_there, choice, zero), is_there }
    }

    /// What stands for the result of an expert that is not there: nothing for none, and NaN for what is no expert.
    pub(super) fn missing(self, w: &mut KernelWriter) -> Register {
        let (none, nothing, nan) = (w.u32(NO_EXPERT as u32), w.f32(0.0), w.f32(f32::NAN));
        let is_none = w.equal(self.choice, none);
        w.select(is_none, nothing, nan)
    }
}
