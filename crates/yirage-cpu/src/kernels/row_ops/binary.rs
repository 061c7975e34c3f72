//! `binary`, the second operand of as many rows as the first, or one row that all meet.

use super::super::ways::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{FloatRow, FloatRows, Out, Run, Site};
use crate::rows;
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct Binary {
    kind: op::BinaryKind,
    a: FloatRows,
    b: Second,
    out: Out<f32>,
}

enum Second {
    Rows(FloatRows),
    Row(FloatRow),
}

impl BindRow for Binary {
    type Op = op::Binary;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::Binary>(vec![floats()])]
    }

    fn bind(op: &op::Binary, site: &Site) -> Result<Binary, HalError> {
        let b = if site.rank(1) == 1 { Second::Row(site.float_row(1)?) } else { Second::Rows(site.float_rows(1)?) };
        Ok(Binary { kind: op.kind, a: site.float_rows(0)?, b, out: site.out(0)? })
    }
}

impl RowOp for Binary {
    unsafe fn run(&self, run: &Run<'_>, rows: Range<usize>) {
        let b = match &self.b {
            Second::Rows(b) => b.src(run),
            Second::Row(b) => b.src(run),
        };
        // SAFETY: the caller's contract; `Site` bound operands that lie whole in their memory.
        unsafe { rows::binary(run.isa, rows, self.a.width(), self.kind, self.a.src(run), b, self.out.dst(run)) };
    }
}
