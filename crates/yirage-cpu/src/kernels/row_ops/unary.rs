//! `unary`.

use super::super::ways::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{FloatRows, Out, Run, Site};
use crate::rows;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct Unary {
    kind: op::UnaryKind,
    c: f32,
    x: FloatRows,
    out: Out<f32>,
}

impl BindRow for Unary {
    type Op = op::Unary;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::Unary>(vec![floats()])]
    }

    fn bind(op: &op::Unary, site: &Site) -> Result<Unary, HalError> {
        Ok(Unary { kind: op.kind, c: op.c.0, x: site.float_rows(0)?, out: site.out(0)? })
    }
}

impl RowOp for Unary {
    unsafe fn run(&self, run: &Run<'_>, rows: Range<usize>) {
        // SAFETY: the caller's contract; `Site` bound operands that lie whole in their memory.
        unsafe { rows::unary(run.isa, rows, self.x.width(), self.kind, self.c, self.x.src(run), self.out.dst(run)) };
    }
}
