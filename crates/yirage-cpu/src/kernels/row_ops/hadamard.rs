//! `hadamard`.

use super::super::ways::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{FloatRows, Out, Run, Site};
use crate::rows;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct Hadamard {
    part: usize,
    x: FloatRows,
    out: Out<f32>,
}

impl BindRow for Hadamard {
    type Op = op::Hadamard;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::Hadamard>(vec![floats()])]
    }

    fn bind(op: &op::Hadamard, site: &Site) -> Result<Hadamard, HalError> {
        Ok(Hadamard { part: op.part as usize, x: site.float_rows(0)?, out: site.out(0)? })
    }
}

impl RowOp for Hadamard {
    unsafe fn run(&self, run: &Run<'_>, rows: Range<usize>) {
        // SAFETY: the caller's contract; `Site` bound operands that lie whole in their memory.
        unsafe { rows::hadamard(run.isa, rows, self.x.width(), self.part, self.x.src(run), self.out.dst(run)) };
    }
}
