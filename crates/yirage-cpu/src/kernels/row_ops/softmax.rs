//! `softmax`.

use super::super::ways::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{FloatRows, Out, Run, Site};
use crate::rows;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct Softmax {
    x: FloatRows,
    out: Out<f32>,
}

impl BindRow for Softmax {
    type Op = op::Softmax;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::Softmax>(vec![floats()])]
    }

    fn bind(_: &op::Softmax, site: &Site) -> Result<Softmax, HalError> {
        Ok(Softmax { x: site.float_rows(0)?, out: site.out(0)? })
    }
}

impl RowOp for Softmax {
    unsafe fn run(&self, run: &Run<'_>, rows: Range<usize>) {
        // SAFETY: the caller's contract; `Site` bound operands that lie whole in their memory.
        unsafe { rows::softmax(run.isa, rows, self.x.width(), self.x.src(run), self.out.dst(run)) };
    }
}
