//! Where operands of a loop lie.

use super::operand::StridedInput;
use yirage_ir::expr::MAX_INPUTS;

/// Where the first elements of a loop lie.
#[derive(Clone, Copy)]
pub(super) struct Bases {
    pub(super) inputs: [*const u8; MAX_INPUTS],
    pub(super) out: *mut u8,
}

impl Bases {
    pub(super) fn of(inputs: &[StridedInput], out: *mut u8) -> Bases {
        let mut bases = Bases { inputs: [std::ptr::null(); MAX_INPUTS], out };
        bases.inputs.iter_mut().zip(inputs).for_each(|(base, input)| *base = input.base);
        bases
    }
}
