//! `rope`: rotation by tables, which are looked up by positions or are those of each row.

use super::super::operand_constraints::{floats, integers};
use super::{BindRow, RowOp, rule};
use crate::bind::{CpuRunContext, FloatRows, OutputRows, Site, WordArray};
use std::ops::Range;
use yirage_cpu_kernels::rows;
use yirage_hal::HalError;
use yirage_ir::op;
use yirage_plan::rules::OpRule;

pub(super) struct RopeRowOp {
    op: op::Rope,
    cos: FloatRows,
    sin: FloatRows,
    /// Where rows are looked up in the tables; none where the tables have a row for each.
    positions: Option<WordArray<i32>>,
    x: FloatRows,
    out: OutputRows<f32>,
}

impl BindRow for RopeRowOp {
    type Op = op::Rope;

    fn rules() -> Vec<OpRule> {
        let by_position = vec![floats(), floats(), floats(), integers()];
        vec![
            rule::<op::Rope>(by_position).when("per_row", false),
            rule::<op::Rope>(vec![floats()]).when("per_row", true),
        ]
    }

    fn bind(op: &op::Rope, site: &Site) -> Result<RopeRowOp, HalError> {
        let (cos, sin, positions) = match op.per_row {
            true => (site.float_rows(1)?, site.float_rows(2)?, None),
            false => (site.whole_rows(1)?, site.whole_rows(2)?, Some(site.array(3)?)),
        };
        Ok(RopeRowOp { op: op.clone(), cos, sin, positions, x: site.float_rows(0)?, out: site.out(0)? })
    }
}

impl RowOp for RopeRowOp {
    unsafe fn run(&self, run: &CpuRunContext<'_>, rows: Range<usize>) {
        // SAFETY: what `RowOp::run` is promised; `Site` bound operands that lie whole in their memory.
        unsafe {
            let tables = [&self.cos, &self.sin].map(|t| match self.positions {
                Some(_) => t.all(run),
                None => t.some(run, rows.clone()),
            });
            let rope = rows::RopeParams {
                heads: self.x.width() / self.op.width as usize,
                width: self.op.width as usize,
                rotary: self.op.rotary as usize,
                interleaved: self.op.interleaved,
                cos: tables[0],
                sin: tables[1],
            };
            let positions = self.positions.as_ref().map(|p| p.some(run, rows.clone()));
            rows::rope(run.isa, rows, rope, positions, self.x.src(run), self.out.dst(run));
        }
    }
}
