//! `concat_heads`: groups of two rows, one after the other.

use super::super::operand_constraints::floats;
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRows, OutputRows, Site};
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct ConcatHeadsRowOp {
    groups: usize,
    a: FloatRows,
    b: FloatRows,
    out: OutputRows<f32>,
}

impl BindRow for ConcatHeadsRowOp {
    type Op = op::ConcatHeads;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::ConcatHeads>(vec![floats()])]
    }

    fn bind(op: &op::ConcatHeads, site: &Site) -> Result<ConcatHeadsRowOp, HalError> {
        Ok(ConcatHeadsRowOp {
            groups: op.groups as usize,
            a: site.float_rows(0)?,
            b: site.float_rows(1)?,
            out: site.out(0)?,
        })
    }
}

impl RowOp for ConcatHeadsRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        let (m, n) = (self.a.width() / self.groups, self.b.width() / self.groups);
        let (a, b, out) = (self.a.first(run), self.b.first(run), self.out.first(run));
        for part in rows.start * self.groups..rows.end * self.groups {
            // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
            unsafe {
                let to = out.wrapping_add(part * (m + n));
                std::ptr::copy_nonoverlapping(a.wrapping_add(part * m), to, m);
                std::ptr::copy_nonoverlapping(b.wrapping_add(part * n), to.add(m), n);
            }
        }
    }
}
