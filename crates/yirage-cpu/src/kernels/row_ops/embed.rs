//! `embed`: rows of a table, decoded exactly and scaled; ids outside it give NaN.

use super::super::operand_constraints::{integers, table};
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, LookupTable, OutputRows, Site, WordArray};
use std::ops::Range;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct EmbedRowOp {
    table: LookupTable,
    scale: f32,
    ids: WordArray<i32>,
    out: OutputRows<f32>,
}

impl BindRow for EmbedRowOp {
    type Op = op::Embed;

    fn rules() -> Vec<OpRule> {
        vec![rule::<op::Embed>(vec![table(), integers()])]
    }

    fn bind(op: &op::Embed, site: &Site) -> Result<EmbedRowOp, HalError> {
        Ok(EmbedRowOp { table: site.table(0)?, scale: op.scale.0, ids: site.array(1)?, out: site.out(0)? })
    }
}

impl RowOp for EmbedRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        let ids = unsafe { self.ids.some(run, rows.clone()) };
        for (t, &id) in rows.zip(ids) {
            // SAFETY: this row is nobody else's, and `Site::table` bound a table that was whole before the pass.
            unsafe {
                let row = self.out.some(run, t..t + 1);
                if !self.table.read(run, id, row) {
                    row.fill(f32::NAN);
                }
                if self.scale != 1.0 {
                    row.iter_mut().for_each(|x| *x *= self.scale);
                }
            }
        }
    }
}
